"""Tests `gpu_run.ray.Mapper` on a cluster of Ray's with several nodes on this machine: while nothing happens, while an actor's process is
killed, and while a node is. Every record must come out once.

Needs gpu-run, ray[data] and pyarrow.
"""

import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import gpu_run
import gpu_run.ray
import pyarrow as pa
import ray
from ray.cluster_utils import Cluster

RECORDS = 40_000
BATCH = 500


def mapped(marks: str, **options: object):
    """Returns the dataset after the program. Its actors leave marks: a file for each of their processes."""
    mapper = gpu_run.ray.Mapper(gpu_run.examples.UPPER, column="text", device="cpu", id_column="id", **options)

    class Marking(mapper):
        def __call__(self, table):
            Path(marks, str(os.getpid())).touch()
            return super().__call__(table)

    table = pa.table({"id": range(RECORDS), "text": [f"record {i}" for i in range(RECORDS)]})
    dataset = ray.data.from_arrow(table).repartition(RECORDS // BATCH)
    return dataset.map_batches(Marking, batch_format="pyarrow", batch_size=BATCH, concurrency=3)


def check(name: str, when_it_runs) -> None:
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as marks:
        disturbance = threading.Thread(target=when_it_runs, args=(Path(marks),), daemon=True)
        disturbance.start()
        seen: Counter[int] = Counter()
        for batch in mapped(marks).iter_batches(batch_format="pyarrow"):
            for number, output in zip(batch["id"].to_pylist(), batch["output"].to_pylist()):
                assert output == f"RECORD {number}", (number, output)
                seen[number] += 1
        disturbance.join()
        processes = len(list(Path(marks).iterdir()))
    assert len(seen) == RECORDS and set(seen.values()) == {1}, f"{len(seen)} of {RECORDS} records, {seen.most_common(1)}"
    print(f"{name}: {RECORDS} records, each once, by {processes} processes, in {time.monotonic() - began:.1f} s", flush=True)


def first_mark(marks: Path, seconds: float = 120) -> int:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := sorted(marks.iterdir()):
            return int(found[0].name)
        time.sleep(0.01)
    raise TimeoutError("no actor began")


def kill_an_actor(marks: Path) -> None:
    os.kill(first_mark(marks), signal.SIGKILL)


def main() -> None:
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    nodes = [cluster.add_node(num_cpus=2) for _ in range(2)]
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    assert len([node for node in ray.nodes() if node["Alive"]]) == 3

    check("three nodes", lambda marks: None)
    check("an actor killed", kill_an_actor)

    def kill_a_node(marks: Path) -> None:
        first_mark(marks)
        cluster.remove_node(nodes[0], allow_graceful=False)

    check("a node killed", kill_a_node)
    assert len([node for node in ray.nodes() if node["Alive"]]) == 2

    # A record that fails is named by its id.
    broken = pa.table({"id": [70, 71], "text": ["a", "b"]})
    mapper = gpu_run.ray.Mapper(b'(module (func (export "_start") unreachable))', column="text", device="cpu", id_column="id", on_error="return")
    rows = ray.data.from_arrow(broken).map_batches(mapper, batch_format="pyarrow", concurrency=1).take_all()
    assert [row["output"] for row in rows] == [None, None]
    assert sorted(row["error"].split(":")[0] for row in rows) == ["record 70", "record 71"], rows
    print("a record that fails is named")
    ray.shutdown()
    cluster.shutdown()


main()
sys.exit(0)
