"""What scripts/crate-suites and scripts/std-tests share: programs of Rust's test harness run on gpu-run, compared test by test with
the native build. Needs no Rust and no network to run what was built elsewhere.

A suite is a program with tests, as `suites.json` in a folder of programs lists them:

    name, program   its line in the table
    file            the wasm program, in the folder
    options         of gpu-run, for this program; `SCRATCH` stands for an empty folder that has a folder `tmp`,
                    `FOLDER` for that of the programs
    native          what became of each test in the native build
    skip            tests that are not run, with the reason
    by_module       whether the table has a line for each module
    with_ignored    whether tests that their authors ignore on WebAssembly are run
    partial         whether one of the builds may lack or ignore tests that the other one has
"""

import argparse
import json
import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ME = Path(sys.argv[0]).name
# A test that takes longer hangs. The slowest takes some ten seconds on cpu, on two busy cores.
SECONDS_PER_TEST = 180
# Before a program prints anything, gpu-run compiles it: for a GPU, the tests of core take minutes.
SECONDS_TO_COMPILE = 900
# A native build that takes longer hangs.
NATIVE_SECONDS = 900
EXPECTS_PANIC = "expects a panic: Rust's test harness does not run it on WebAssembly"
IGNORED = "ignored by its authors"
CATCHES_PANIC = "catches a panic, and this build does not unwind"
FAILS_NATIVELY = "fails natively, too"
ONLY_NATIVE = "not compiled for WASI, by its authors"
ONLY_HERE = "compiled for WASI only, so there is no native result: it passes"

# --- Building -------------------------------------------------------------------------------------------------------------


def cargo(source, *options, environment=None, command=("cargo",)):
    command = [*command, *options]
    done = subprocess.run(command, cwd=source, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{ME}: {' '.join(map(str, command))} failed in {source}")
    return done.stdout


def executables(printed):
    """The test programs that cargo says it built: cargo's target, and the file."""
    for message in map(json.loads, printed.splitlines()):
        if message["reason"] == "compiler-artifact" and message.get("executable"):
            yield message["target"], Path(message["executable"])


def without_names(data):
    """A module without its custom sections: names are half of it."""
    out, at = bytearray(data[:8]), 8
    while at < len(data):
        start, size, shift = at, 0, 0
        at += 1
        while True:
            byte = data[at]
            size |= (byte & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if byte < 0x80:
                break
        at += size
        if data[start] != 0:
            out += data[start:at]
    return bytes(out)


def natively(file, source, environment, left_out=()):
    command = [file, *(part for test in left_out for part in ("--skip", test))]
    # Without stderr: what a thread writes there may come between the name of a test and its result. A shell starts what it runs
    # in the background without SIGINT, by which tests end processes.
    silent = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd=source, env=environment, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), **silent)
    try:
        output, _ = process.communicate(timeout=NATIVE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
        sys.exit(f"{ME}: {file} takes longer than {NATIVE_SECONDS} s natively; it ended with: {output.decode(errors='replace')[-200:]}")
    return results_of(output.decode(errors="replace"))


# --- Running --------------------------------------------------------------------------------------------------------------

RESULT = re.compile(r"^test (\S+)( - should panic)? \.\.\. (.*)$", re.MULTILINE)


def results_of(text):
    """The tests that libtest's output names, and what became of each: `ok`, `FAILED`, `ignored`, `ignored, WHY`, or `` for one that
    was running."""
    found = {}
    for test, panics, result in RESULT.findall(text):
        word = re.match(r"(ok|FAILED|ignored.*)?", result).group()
        found[test] = "should panic" if panics and word.startswith("ignored") else word
    return found


def watched(command):
    """Runs a command; returns its output, what it said on stderr, and whether it was killed because it printed nothing for too long."""
    # Not together: what a thread says of its panic may come between the name of a test and its result.
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said)
        output, hangs = b"", True
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while hangs and selector.select(SECONDS_PER_TEST if output else SECONDS_TO_COMPILE):
                data = os.read(process.stdout.fileno(), 1 << 16)
                hangs = bool(data)
                output += data
        if hangs:
            process.kill()
        process.wait()
        said.seek(0)
        return output.decode(errors="replace"), said.read().decode(errors="replace"), hangs


def by_gpu_run(command, skip, with_ignored):
    """The result of each test. A panic ends the program: the tests after it run in another one."""
    results, log = {}, ""
    while True:
        rest = ["--exact", *(["--include-ignored"] if with_ignored else [])]
        for test in [*skip, *results]:
            rest += ["--skip", test]
        output, said, hangs = watched([*command, *rest])
        log += output + said
        found = results_of(output)
        for test in [test for test, result in found.items() if not result]:
            found[test] = "hangs" if hangs else "ends the program"
        results |= found
        if "\ntest result: " in output:
            return results, log
        if not any(result in ("hangs", "ends the program") for result in found.values()):
            return {**results, "(all)": "ended without results"}, log


@dataclass
class Row:
    passed: int = 0
    skipped: int = 0
    failed: list = field(default_factory=list)


def run(folder, suites, gpu_run, device):
    """Runs suites, prints the table; returns whether nothing failed."""
    total, why = Row(), {}
    print(f"{'tests of':24} {'program':22} {'passed':>7} {'failed':>7} {'skipped':>7} {'seconds':>8}")
    for suite in suites:
        native, began = suite["native"], time.monotonic()
        skip = {test: IGNORED for test, result in native.items() if result.startswith("ignored")}
        skip |= {test: FAILS_NATIVELY for test, result in native.items() if result == "FAILED"}
        skip |= suite["skip"]
        results, log = {}, ""
        if any(test not in skip for test in native):
            with tempfile.TemporaryDirectory() as scratch:
                (Path(scratch) / "tmp").mkdir()
                options = [option.replace("SCRATCH", scratch).replace("FOLDER", str(folder)) for option in suite["options"]]
                results, log = by_gpu_run([gpu_run, "--device", device, *options, folder / suite["file"]], skip, suite.get("with_ignored"))
        rows = {}
        for test in {**native, **results}:
            here, there = results.get(test, "missing"), native.get(test, "missing")
            reason = skip.get(test) or (EXPECTS_PANIC if here == "should panic" else None)
            if not reason and suite.get("partial"):
                if here.startswith("ignored"):
                    reason = CATCHES_PANIC if "unwinding" in here else IGNORED
                else:
                    reason = ONLY_NATIVE if here == "missing" else ONLY_HERE if (here, there) == ("ok", "missing") else None
            row = rows.setdefault(test.split("::")[0] if suite.get("by_module") else suite["program"], Row())
            if reason:
                row.skipped += 1
                why[reason] = why.get(reason, 0) + 1
            elif here == there == "ok":
                row.passed += 1
            else:
                row.failed.append(f"{test}: {here} (native: {there})")
        seconds = f"{time.monotonic() - began:8.1f}"
        for program, row in sorted(rows.items()):
            print(f"{suite['name']:24} {program:22} {row.passed:7} {len(row.failed):7} {row.skipped:7} {seconds}", flush=True)
            seconds = ""
        bad = [line for row in rows.values() for line in row.failed]
        if bad:
            print("".join(f"    {line}\n" for line in [*bad, *log.splitlines()[-25:]]), flush=True)
        total.passed += sum(row.passed for row in rows.values())
        total.skipped += sum(row.skipped for row in rows.values())
        total.failed += bad
    for reason, count in sorted(why.items()):
        print(f"{count} skipped: {reason}")
    print(f"{total.passed} passed, {len(total.failed)} failed, {total.skipped} skipped")
    return not total.failed and total.passed > 0


def built_gpu_run():
    """The path of gpu-run, which is built if GPU_RUN does not name one."""
    path = os.environ.get("GPU_RUN")
    if not path:
        print(f"{ME}: building gpu-run", file=sys.stderr)
        cargo(ROOT, "build", "--quiet", "--locked", "--release", "-p", "gpu-run")
        path = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/gpu-run"
    return str(path)


def main(doc, tools, build, flags=()):
    """The command line of both scripts; build(folder, arguments) returns the suites, with their programs in the folder."""
    parser = argparse.ArgumentParser(usage=doc, add_help=False)
    for flag in ("-h", "--help"), *((flag,) for flag in flags):
        parser.add_argument(*flag, action="store_true")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--pack", type=Path)
    parser.add_argument("--prebuilt", type=Path)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    if args.help:
        print(doc, end="")
        return
    if args.prebuilt and not (args.prebuilt / "suites.json").is_file():
        sys.exit(f"{ME}: {args.prebuilt} was not made by {ME} --pack")
    folder = args.pack or args.prebuilt or tools / ("unwinding" if "--unwind" in sys.argv else "programs")
    if not args.prebuilt:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "suites.json").write_text(json.dumps(build(folder, args), indent=1))
    if args.pack:
        for file in ME, "suites.py":
            shutil.copy(ROOT / "scripts" / file, folder)
        size = sum(file.stat().st_size for file in folder.iterdir())
        print(f"{ME}: {size >> 20} MiB in {folder}: run {folder}/{ME} --prebuilt {folder}")
        return
    suites = json.loads((folder / "suites.json").read_text())
    wanted = [suite for suite in suites if not args.names or suite["name"].split()[0] in args.names]
    sys.exit(0 if run(folder, wanted, built_gpu_run(), args.device) else 1)
