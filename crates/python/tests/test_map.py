"""Many records through one program."""

import io
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import gpu_run
import pytest


def test_outputs_come_in_the_order_of_the_records(echo):
    records = [f"record {i}" for i in range(5000)]
    assert list(echo.map(records, text=True)) == records
    assert list(echo.map((record.encode() for record in records))) == [record.encode() for record in records]
    assert list(echo.map([])) == []


def test_records_are_taken_a_few_batches_ahead(echo):
    taken = 0

    def count():
        nonlocal taken
        for i in itertools.count():
            taken += 1
            yield str(i + 1)

    outputs = echo.map(count(), batch=16)
    assert list(itertools.islice(outputs, 100)) == [str(i + 1).encode() for i in range(100)]
    assert taken <= 100 + 16 * 4, "the input is read to no end"
    outputs.close()
    assert list(outputs) == []


def test_none_is_not_run(echo):
    assert list(echo.map([None, "a", None, None, "c", None])) == [None, b"a", None, None, b"c", None]
    assert list(echo.map([None] * 3)) == [None] * 3
    assert list(echo.map(["", None])) == [b"", None]


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_files_lines_are_records(echo, tmp_path, end):
    lines = [f"{i} " + "z" * (i % 97) + "\n" for i in range(3000)]
    text = "".join(lines).removesuffix("\n") + end
    path = tmp_path / "lines.txt"
    path.write_text(text)
    expected = [line.encode() for line in lines]
    assert list(echo.map(path)) == expected
    assert list(echo.map(str(path), strip_newline=True)) == [line[:-1] for line in expected]
    with open(path, "rb") as file:
        assert list(echo.map(file)) == expected
    assert list(echo.map(io.StringIO(text))) == expected
    assert list(echo.map(io.BytesIO(b""))) == []


def test_a_line_longer_than_what_is_read_at_once(echo, tmp_path):
    count = gpu_run.Program(COUNT, device="cpu")
    path = tmp_path / "long.txt"
    path.write_bytes(b"a" * 3_000_000 + b"\nb\n")
    assert list(count.map(path)) == [(3_000_001).to_bytes(4, "little"), (2).to_bytes(4, "little")]


# Prints how many bytes there are to read.
COUNT = rb"""
(module
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 3)
    (data (i32.const 0) "\40\00\00\00\00\00\01\00\0c\00\00\00\04\00\00\00")
    (func (export "_start")
        (loop $more
            (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 20)))
            (i32.store (i32.const 12) (i32.add (i32.load (i32.const 12)) (i32.load (i32.const 20))))
            (br_if $more (i32.load (i32.const 20))))
        (i32.store (i32.const 24) (i32.sub (i32.load (i32.const 12)) (i32.const 4)))
        (i32.store (i32.const 8) (i32.const 24))
        (i32.store (i32.const 12) (i32.const 4))
        (drop (call $write (i32.const 1) (i32.const 8) (i32.const 1) (i32.const 20)))))
"""


def test_a_record_that_fails_is_named_after_those_before_it(echo):
    outputs = echo.map(["a", "c", "x", "d"], batch=2)
    assert [next(outputs), next(outputs)] == [b"a", b"c"]
    with pytest.raises(gpu_run.ProgramError, match="record 2 trapped: unreachable") as raised:
        next(outputs)
    assert raised.value.record == 2
    assert list(outputs) == []


def test_failures_are_values_if_that_is_wanted(echo):
    records = ["e" if i % 10 == 7 else f"a{i}" for i in range(3000)]
    outputs = list(echo.map(records, on_error="return"))
    for i, output in enumerate(outputs):
        if i % 10 == 7:
            assert isinstance(output, gpu_run.ProgramError)
            assert (output.record, output.returncode, output.stderr) == (i, 3, b"e")
        else:
            assert output == f"a{i}".encode()
    assert len(outputs) == 3000


def test_numbers_of_records_count_those_without_a_run(echo):
    outputs = list(echo.map([None, "x", None, "x"], on_error="return"))
    assert [output and output.record for output in outputs] == [None, 1, None, 3]


def test_an_output_that_is_no_text_is_an_error_with_its_record(echo):
    outputs = list(echo.map(["a", "b"], text=True, on_error="return"))
    assert outputs[0] == "a" and isinstance(outputs[1], gpu_run.Error) and "record 1 is not UTF-8" in str(outputs[1])
    with pytest.raises(gpu_run.Error, match="record 1 is not UTF-8"):
        list(echo.map(["a", "b"], text=True))


def test_a_timeout_is_for_the_records_that_run_together(echo):
    with pytest.raises(gpu_run.ProgramTimeout) as raised:
        list(echo.map(["a", "l"], timeout=0.3))
    assert raised.value.record == 1


def test_an_input_that_fails_does_so_after_the_outputs_before_it(echo):
    def broken():
        yield from ["a", "c"]
        raise KeyError("broken")

    outputs = echo.map(broken())
    assert [next(outputs), next(outputs)] == [b"a", b"c"]
    with pytest.raises(KeyError, match="broken"):
        next(outputs)
    with pytest.raises(TypeError, match="record 1 has the type int"):
        list(echo.map(["a", 1]))
    with pytest.raises(TypeError, match="not iterable"):
        echo.map(1)
    with pytest.raises(FileNotFoundError, match="missing.txt"):
        echo.map("missing.txt")
    with pytest.raises(ValueError, match="on_error"):
        echo.map([], on_error="ignore")
    with pytest.raises(TypeError, match="column= is for tables"):
        echo.map(["a"], column="a")


def test_a_program_that_cannot_be_compiled_says_so():
    program = gpu_run.Program(b'(module (import "a" "b" (func)) (func (export "_start")))', device="cpu")
    with pytest.raises(gpu_run.Error, match="`a.b`"):
        list(program.map(["a"]))


def test_progress_is_told(echo):
    told = []
    list(echo.map(["a"] * 2000 + ["x"], on_error="return", progress=lambda *done: told.append(done)))
    assert told[-1] == (2001, 1) and told == sorted(told)
    told.clear()
    with pytest.raises(ZeroDivisionError):
        list(echo.map(["a"], progress=lambda *done: 1 // 0))


def test_progress_is_shown_without_tqdm(echo, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    list(echo.map(["a"] * 2000, progress=True))
    assert capsys.readouterr().err.endswith("2,000 of 2,000 records")


def test_several_threads_of_python_at_once(echo):
    def one(i):
        return list(echo.map([f"a{i} {n}" for n in range(500)], text=True))

    with ThreadPoolExecutor(4) as pool:
        for i, outputs in enumerate(pool.map(one, range(8))):
            assert outputs == [f"a{i} {n}" for n in range(500)]


def test_one_iterator_is_for_one_thread(echo):
    began, waits = threading.Event(), threading.Event()

    def slow():
        began.set()
        waits.wait(20)
        yield "a"

    outputs = echo.map(slow())
    thread = threading.Thread(target=lambda: list(outputs))
    thread.start()
    began.wait(20)
    with pytest.raises(ValueError, match="another thread"):
        next(outputs)
    waits.set()
    thread.join()


def test_a_failure_at_the_end_does_not_disturb_the_next_call(echo):
    for _ in range(3):
        outputs = echo.map(["a", "x"])
        assert next(outputs) == b"a"
        time.sleep(0.2)
        with pytest.raises(gpu_run.ProgramError, match="record 1 trapped: unreachable"):
            next(outputs)
        outputs.close()
        assert list(echo.map(["a"] * 2000)) == [b"a"] * 2000


def test_an_iterator_that_is_dropped_ends_what_runs(echo):
    for _ in range(3):
        outputs = echo.map(itertools.chain(["a"], itertools.repeat("l")), batch=1)
        assert next(outputs) == b"a"
        del outputs
    gpu_run._native.settle(20)

    def works():
        began = time.process_time()
        time.sleep(0.5)
        return time.process_time() - began >= 0.3

    # On a busy machine, threads of other libraries may still have something to do; what was dropped would work for ever.
    assert not all(works() for _ in range(20)), "something still runs"
    assert list(echo.map(["a"])) == [b"a"]


@pytest.mark.parametrize("call", ["program.run(stdin='l')", "list(program.map(['l']))", "program.map_column(['l'])"])
def test_ctrl_c_ends_a_running_call(call):
    script = textwrap.dedent(f"""
        import gpu_run, programs, time
        program = gpu_run.Program(programs.ECHO, device="cpu")
        program.run(stdin="a")
        print("ready", flush=True)
        try:
            {call}
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        assert program.run(stdin="again").stdout == b"again"
        print("over", flush=True)
    """)
    env = dict(os.environ, PYTHONPATH=os.path.dirname(__file__))
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=env)
    assert child.stdout.readline() == "ready\n"
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    began = time.monotonic()
    assert child.stdout.readline() == "interrupted\n"
    took = time.monotonic() - began
    said = child.communicate(timeout=60)[0]
    assert (said, child.returncode) == ("over\n", 0)
    assert took < 5, f"it took {took:.1f} s"
