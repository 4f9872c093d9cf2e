"""Programs that run once."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import gpu_run
import pytest

import programs


def test_what_a_program_printed_and_how_it_ended(echo):
    done = echo.run(stdin="hello")
    assert (done.returncode, done.stdout, done.stderr, done.error) == (0, b"hello", b"", None)
    done.check_returncode()
    done = echo.run(b"error", text=True)
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "error")
    with pytest.raises(gpu_run.ProgramError, match="exited with code 3\nerror"):
        done.check_returncode()


@pytest.mark.parametrize("stdin", [b"a text", bytearray(b"a text"), memoryview(b"a text"), "a text"])
def test_stdin_is_text_or_bytes(echo, stdin):
    assert echo.run(stdin).stdout == b"a text"


def test_a_trap_has_the_exit_code_of_the_command(echo):
    done = echo.run(stdin="x")
    assert done.returncode == 134 and "trapped: unreachable" in done.error
    with pytest.raises(gpu_run.ProgramError) as raised:
        echo.run(stdin="x", check=True)
    assert (raised.value.returncode, raised.value.record) == (134, None)
    assert str(raised.value).startswith("the program trapped: unreachable")


@pytest.mark.parametrize("timeout", [0.2, timedelta(seconds=0.2)])
def test_a_program_that_takes_too_long_is_stopped(echo, timeout):
    began = time.monotonic()
    with pytest.raises(gpu_run.ProgramTimeout, match="did not finish within 0.2 s") as raised:
        echo.run(stdin="l", timeout=timeout)
    assert isinstance(raised.value, TimeoutError) and raised.value.returncode == 124
    assert time.monotonic() - began < 20


def test_a_rust_file_is_compiled_and_given_what_was_passed(tmp_path):
    (tmp_path / "app.rs").write_text(programs.RUST)
    data = tmp_path / "data"
    data.mkdir()
    (data / "in.txt").write_text("from the host")
    app = gpu_run.Program(tmp_path / "app.rs", device="cpu")
    done = app.run("in", ["a b", "c"], {"COLOUR": "blue"}, {data: "/data"}, check=True, text=True)
    assert done.stdout == '["app.wasm", "a b", "c"] Some("blue") None "in"\nfrom the host\ntrue\n'
    assert done.stderr == "done\n" and (data / "out.txt").read_text() == "from the guest"
    assert done.args == ["app.wasm", "a b", "c"]
    done = app.run(read_only_dirs={data: "/data"}, text=True)
    assert done.stdout.endswith("from the host\nfalse\n")
    printed = [f'["app.wasm", "x"] None None "{record}"\n' for record in "12"]
    assert list(app.map(["1", "2"], ["x"], text=True)) == printed


def test_a_package_is_built(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "Cargo.toml").write_text('[package]\nname = "two"\nedition = "2024"\n[workspace]\n')
    (tmp_path / "src/main.rs").write_text("fn main() { println!(\"{}\", 1 + 1) }")
    assert gpu_run.Program(tmp_path, device="cpu").run().stdout == b"2\n"
    with pytest.raises(gpu_run.Error, match="no binary `three`"):
        gpu_run.Program(str(tmp_path), device="cpu", bin="three")


def test_mistakes_are_named(tmp_path, echo):
    with pytest.raises(FileNotFoundError, match="missing.wasm"):
        gpu_run.Program("missing.wasm")
    with pytest.raises(gpu_run.Error, match="without a Cargo.toml"):
        gpu_run.Program(tmp_path)
    with pytest.raises(gpu_run.Error, match="the module: "):
        gpu_run.Program(b"no module")
    (tmp_path / "bad.rs").write_text("fn main() { this is no Rust }")
    with pytest.raises(gpu_run.Error, match="bad.rs does not compile"):
        gpu_run.Program(tmp_path / "bad.rs")
    with pytest.raises(gpu_run.Error, match="nothing:0"):
        gpu_run.Program(programs.ECHO, device="nothing:0")
    with pytest.raises(gpu_run.Error, match="`a.b`"):
        gpu_run.Program(b'(module (import "a" "b" (func)) (func (export "_start")))', device="cpu").run()
    with pytest.raises(FileNotFoundError, match="no/such/folder"):
        echo.run(dirs=["no/such/folder"])
    with pytest.raises(TypeError, match="a list of arguments"):
        echo.run(args="abc")
    with pytest.raises(TypeError, match="a list of folders"):
        echo.run(dirs="abc")
    with pytest.raises(ValueError, match="timeout"):
        echo.run(timeout=-1)


def test_devices_have_names(echo):
    names = [device.name for device in gpu_run.devices()]
    assert names[0] == "cpu" and echo.device == "cpu"
    assert gpu_run.devices()[0].processors > 0


def test_other_threads_of_python_go_on_meanwhile(echo):
    with ThreadPoolExecutor(4) as pool:
        outputs = list(pool.map(lambda i: echo.run(stdin=f"a{i}").stdout, range(40)))
    assert outputs == [f"a{i}".encode() for i in range(40)]
    steps, over = 0, threading.Event()

    def late():
        with pytest.raises(gpu_run.ProgramTimeout):
            echo.run(stdin="l", timeout=0.5)
        over.set()

    thread = threading.Thread(target=late)
    thread.start()
    while not over.wait(0.01):
        steps += 1
    thread.join()
    assert steps > 5


def test_the_cache_is_where_it_is_said_to_be(tmp_path):
    gpu_run.Program(programs.ECHO, device="cpu", cache=tmp_path / "here").run(stdin="a")
    assert any((tmp_path / "here").rglob("*"))
    gpu_run.Program(programs.ECHO, device="cpu", cache=False).run(stdin="a")
