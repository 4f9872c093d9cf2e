"""third_party.py GPU-RUN FOLDER NAME FILE.wasm ARGUMENTS…: runs one program twice with gpu-run and once with Wasmtime.

Prints one line of the table of `scripts/third-party`, and the outputs if they differ. The program sees FOLDER as `.`, and reads
FOLDER/stdin as its stdin.
"""

import os
import subprocess
import sys
import tempfile
import time

import wasmtime

gpu_run, folder, name, wasm, *arguments = sys.argv[1:]
stdin = os.path.join(folder, "stdin")


def by_gpu_run():
    began = time.monotonic()
    command = [gpu_run, "--device", "cpu", "--dir", f"{folder}::.", wasm, *arguments]
    with open(stdin, "rb") as given:
        done = subprocess.run(command, stdin=given, capture_output=True, timeout=3000)
    return done.stdout, done.stderr, done.returncode, time.monotonic() - began


def by_wasmtime():
    began = time.monotonic()
    engine = wasmtime.Engine()
    linker = wasmtime.Linker(engine)
    linker.define_wasi()
    with tempfile.TemporaryDirectory() as outputs:
        out, err = os.path.join(outputs, "out"), os.path.join(outputs, "err")
        config = wasmtime.WasiConfig()
        config.argv = [os.path.basename(wasm), *arguments]
        config.env = [("GPU_RUN_INSTANCE", "0")]
        config.preopen_dir(folder, ".")
        config.stdin_file, config.stdout_file, config.stderr_file = stdin, out, err
        store = wasmtime.Store(engine)
        store.set_wasi(config)
        instance = linker.instantiate(store, wasmtime.Module.from_file(engine, wasm))
        code = 0
        try:
            instance.exports(store)["_start"](store)
        except wasmtime.ExitTrap as end:
            code = end.code
        except wasmtime.Trap:
            code = 134
        del instance, store
        with open(out, "rb") as stdout, open(err, "rb") as stderr:
            return stdout.read(), stderr.read(), code, time.monotonic() - began


first, again, theirs = by_gpu_run(), by_gpu_run(), by_wasmtime()
same = first[:3] == theirs[:3] == again[:3]
print(
    # A program that fails in the same way everywhere counts as the same; its exit code is printed.
    f"{name:9} {os.path.getsize(wasm):9}  {('the same' if first[2] == 0 else f'same, {first[2]}') if same else 'DIFFERENT':9} {first[3]:8.1f} {again[3]:8.1f} {theirs[3]:9.1f}",
    flush=True,
)
if not same:
    for who, (stdout, stderr, code, _) in [("gpu-run", first), ("gpu-run again", again), ("Wasmtime", theirs)]:
        print(f"    {who}: exit code {code}\n        {stdout[:300]!r}\n        {stderr[-600:]!r}")
    sys.exit(1)
