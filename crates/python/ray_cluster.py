"""Tests `gpu_run.ray.Mapper` on a cluster of Ray's with several nodes on this machine: while nothing happens, while an actor's process is
killed, while a node is, and while the driver is, which is started again. Every record must come out once.

Needs gpu-run, ray[data] and pyarrow.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import gpu_run
import gpu_run.ray
import pyarrow as pa
import pyarrow.ipc
import ray
from ray.cluster_utils import Cluster

RECORDS = 20_000
BATCH = 500


def mapped(marks: str, **options: object):
    """Returns the dataset after the program. Its actors leave marks: a file for each of their processes, with its number and node."""
    mapper = gpu_run.ray.Mapper(gpu_run.examples.UPPER, column="text", device="cpu", id_column="id", **options)

    class Marking(mapper):
        def __call__(self, table):
            Path(marks, f"{os.getpid()}-{ray.get_runtime_context().get_node_id()}").touch()
            return super().__call__(table)

    table = pa.table({"id": range(RECORDS), "text": [f"record {i}" for i in range(RECORDS)]})
    dataset = ray.data.from_arrow(table).repartition(RECORDS // BATCH)
    return dataset.map_batches(Marking, batch_format="pyarrow", batch_size=BATCH, concurrency=3)


def each_once(dataset) -> None:
    seen: Counter[int] = Counter()
    for batch in dataset.iter_batches(batch_format="pyarrow"):
        for number, output in zip(batch["id"].to_pylist(), batch["output"].to_pylist()):
            assert output == f"RECORD {number}", (number, output)
            seen[number] += 1
    assert len(seen) == RECORDS and set(seen.values()) == {1}, f"{len(seen)} of {RECORDS} records, {seen.most_common(1)}"


def drive(address: str, folder: str) -> None:
    """A driver with a checkpoint."""
    ray.init(address=address, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    with tempfile.TemporaryDirectory() as marks:
        each_once(mapped(marks, checkpoint=folder))


def kept(folder: str) -> Counter[int]:
    """Returns the records that are kept as done, and how often."""
    files = Path(folder).glob("*.arrow")
    return Counter(number for file in files for number in pa.ipc.open_file(pa.memory_map(str(file))).read_all()["id"].to_pylist())


def check_a_driver(address: str) -> None:
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, address, folder]
        driver = subprocess.Popen(command)
        while len(kept(folder)) < RECORDS // 4 and driver.poll() is None and time.monotonic() < began + 120:
            time.sleep(0.01)
        driver.kill()
        assert driver.wait() == -signal.SIGKILL, "the driver ended before it was killed"
        done = kept(folder)
        assert RECORDS // 4 <= len(done) < RECORDS, f"{len(done)} records were done when the driver was killed"
        subprocess.run(command, check=True, timeout=240)
        after = kept(folder)
    assert len(after) == RECORDS and all(after[number] == 1 for number in done), "what was done was done again"
    seconds = time.monotonic() - began
    print(f"a driver killed when {len(done)} were done: {RECORDS} records, each once, those not again, in {seconds:.1f} s", flush=True)


def check(name: str, when_it_runs) -> None:
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as marks:
        disturbance = threading.Thread(target=when_it_runs, args=(Path(marks),), daemon=True)
        disturbance.start()
        each_once(mapped(marks))
        disturbance.join()
        processes = len(list(Path(marks).iterdir()))
    print(f"{name}: {RECORDS} records, each once, by {processes} processes, in {time.monotonic() - began:.1f} s", flush=True)


def first_mark(marks: Path, nodes: list[str], seconds: float = 120) -> tuple[int, str]:
    """Waits for an actor that works on one of these nodes; returns its process and its node."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for mark in marks.iterdir():
            process, node = mark.name.split("-")
            if node in nodes:
                return int(process), node
        time.sleep(0.01)
    raise TimeoutError("no actor began")


def main() -> None:
    # The three actors do not all fit on the head.
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    added = {f"node{i}": cluster.add_node(num_cpus=2, resources={f"node{i}": 1}) for i in range(2)}
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    names = {node["NodeID"]: name for node in ray.nodes() for name in added if name in node["Resources"]}
    assert len(ray.nodes()) == 3 and len(names) == 2

    def kill_an_actor(marks: Path) -> None:
        os.kill(first_mark(marks, list(names))[0], signal.SIGKILL)

    def kill_a_node(marks: Path) -> None:
        cluster.remove_node(added[names[first_mark(marks, list(names))[1]]], allow_graceful=False)

    check("three nodes", lambda marks: None)
    check("an actor killed", kill_an_actor)
    # Without the node that is killed, there would be no processor left beside those of the actors.
    check_a_driver(cluster.address)
    check("a node killed, on which an actor worked", kill_a_node)
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


drive(*sys.argv[1:]) if len(sys.argv) > 1 else main()
sys.exit(0)
