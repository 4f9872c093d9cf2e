"""Measures what Python adds: `map` over many records, by the command with files and from Python, in turn, on the same device.

    python measure.py GPU-RUN [RECORDS] [ROUNDS]

Needs gpu-run. Without pyarrow, one of the ways is left out. With GPU_RUN_MOST=1.3, it fails if a way takes more than 1.3 times as long as
the command. GPU_RUN_DEVICE is the device.

On a machine without pip, the package is the folder of an unpacked wheel:

    unzip -q -d package gpu_run-*.whl && PYTHONPATH=package python measure.py ./gpu-run
"""

import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time

import gpu_run

BYTES = 100
WAYS = {
    "lines of a file, each output seen": "for output in program.map('in.txt', batch=BATCH): pass",
    "a list of bytes": "for output in program.map(open('in.txt', 'rb').readlines(), batch=BATCH): pass",
    "an Arrow column to a column": (
        "import pyarrow.csv as csv\n"
        "table = csv.read_csv('in.txt', read_options=csv.ReadOptions(column_names=['text']))\n"
        "program.map_column(table, column='text', batch=BATCH)"
    ),
    "to a file": "open('out.py.txt', 'wb').writelines(program.map('in.txt', batch=BATCH))",
}


def took(command: list[str]) -> tuple[float, float]:
    """Returns the time that a command took, and that of processors, which other processes of the machine disturb less."""
    began, before = time.monotonic(), os.times()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    after = os.times()
    busy = after.children_user - before.children_user + after.children_system - before.children_system
    return time.monotonic() - began, busy


def main() -> None:
    tool = os.path.abspath(sys.argv[1])
    records = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    device = os.environ.get("GPU_RUN_DEVICE", "auto")
    # What is named by a relative path is not found from another folder.
    os.environ["PYTHONPATH"] = os.path.dirname(os.path.dirname(os.path.abspath(gpu_run.__file__)))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["GPU_RUN_CACHE"] = os.path.join(folder, "cache")
        with open("upper.wat", "wb") as file:
            file.write(gpu_run.examples.UPPER)
        with open("in.txt", "w") as file:
            file.writelines(f"{i:09} ".ljust(BYTES - 1, "a") + "\n" for i in range(records))
        program = gpu_run.Program("upper.wat", device=device)
        batch = 1024 if program.device == "cpu" else 131_072
        ways = {"gpu-run map, file to file": [tool, "map", "--device", device, "upper.wat", "-i", "in.txt", "-o", "out.txt"]}
        for name, code in WAYS.items():
            start = f"import gpu_run; program = gpu_run.Program('upper.wat', device={device!r}); BATCH = {batch}\n"
            if "pyarrow" not in code or importlib.util.find_spec("pyarrow"):
                ways[name] = [sys.executable, "-c", start + code]
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for turn in range(rounds + 1):
            for name, command in ways.items():
                if os.path.exists("out.txt"):
                    os.remove("out.txt")
                if os.path.exists("out.txt.journal"):
                    os.remove("out.txt.journal")
                seconds = took(command)
                # The first turn compiles.
                if turn:
                    times[name].append(seconds)
        print(f"{records:,} records of {BYTES} bytes on {program.device}, medians of {rounds}")
        print(f"  {'':36} {'time':>9} {'ratio':>6} {'of processors':>15} {'ratio':>6}")
        first: list[float] = []
        slow = []
        for name, seconds in times.items():
            whole, busy = (statistics.median(column) for column in zip(*seconds))
            first = first or [whole, busy]
            print(f"  {name:36} {whole:7.2f} s {whole / first[0]:6.2f} {busy:13.2f} s {busy / first[1]:6.2f}")
            if whole > first[0] * float(os.environ.get("GPU_RUN_MOST", "inf")):
                slow.append(name)
    if slow:
        sys.exit("too slow: " + ", ".join(slow))


main()
