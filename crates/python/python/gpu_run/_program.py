"""Programs, and what they are run with."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any, Literal, Protocol, cast

from . import _native
from ._errors import ProgramError, ProgramTimeout
from ._native import Array, Outputs
from ._progress import Progress, callback

__all__ = ["Completed", "Function", "Program"]

Path = str | os.PathLike[str]
Record = bytes | bytearray | memoryview | str | None
Dirs = Mapping[Path, str] | Iterable[Path]
Timeout = float | timedelta | None
ArrayType = Literal["binary", "string", "large_binary", "large_string"]
OnError = Literal["raise", "return"]


class _ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]: ...


class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes | str: ...


Arrow = _ArrowArray | _ArrowStream
Records = Iterable[Record] | Path | _Readable | Arrow
Value = float | int | bool | str | bytes | Decimal
Column = Arrow | Iterable[Value | None] | Value


class Completed:
    """How a program ended, and what it printed; as `subprocess.CompletedProcess`.

    `error` says what happened to a program that did not just exit; then `returncode` is that of the command `gpu-run`, as in 134 for
    a trap.
    """

    def __init__(self, args: list[str], returncode: int, stdout: Any, stderr: Any, error: str | None) -> None:
        self.args = args
        self.returncode = returncode
        self.stdout = stdout
        self.stderr = stderr
        self.error = error

    def check_returncode(self) -> None:
        """Raise `ProgramError` unless the exit code is 0."""
        if self.returncode != 0:
            message = self.error or f"exited with code {self.returncode}"
            raise ProgramError(message, self.returncode, _bytes(self.stdout), _bytes(self.stderr))

    def __repr__(self) -> str:
        error = f", error={self.error!r}" if self.error else ""
        return f"Completed(args={self.args!r}, returncode={self.returncode}, stdout={self.stdout!r}, stderr={self.stderr!r}{error})"


class Program:
    """A program on a device: a WebAssembly module, made by `cargo build --target wasm32-wasip1` or any other compiler.

    `source` is the path of a `.wasm` or `.wat` file, or its bytes; or a Rust file or the folder of a Cargo package, which are built first,
    with the installed Rust. `bin` chooses one of a package's binaries.

    `device` is `"auto"`: the first GPU, or `"cpu"` where there is none; or a name of `gpu_run.devices()`. `cache` is the folder in which
    compiled programs are kept, if not the one of the command `gpu-run`; `False` keeps them in memory only.

    A program is given nothing of this process but what is passed to `run` and `map`. Several threads can use one at once.

    >>> import gpu_run
    >>> three = gpu_run.Program(b'(module (func (export "three") (result i32) i32.const 3))', device="cpu")
    >>> three.device, three.functions
    ('cpu', {'three': '() -> (i32)'})
    """

    def __init__(
        self,
        source: Path | bytes | bytearray | memoryview,
        *,
        device: str = "auto",
        cache: bool | Path | None = None,
        bin: str | None = None,
    ) -> None:
        if isinstance(source, (bytes, bytearray, memoryview)):
            wasm, self.name = bytes(source), "the module"
            argv0 = "program.wasm"
        else:
            wasm, argv0 = _native.compile(source, bin)
            self.name = os.fspath(source)
        self._args = [argv0]
        self._native = _native.Program(wasm, self.name, argv0, device, cache)

    @property
    def device(self) -> str:
        """The name of the device that the program runs on."""
        return self._native.device

    @property
    def functions(self) -> dict[str, str]:
        """The functions that the module exports, and their types."""
        return dict(self._native.functions)

    def __repr__(self) -> str:
        return f"<gpu_run.Program {self.name} on {self.device}>"

    def run(
        self,
        stdin: bytes | bytearray | memoryview | str | None = None,
        args: Iterable[str] = (),
        env: Mapping[str, str] | None = None,
        dirs: Dirs = (),
        *,
        read_only_dirs: Dirs = (),
        timeout: Timeout = None,
        max_memory: int | None = None,
        threads: int | None = None,
        check: bool = False,
        text: bool = False,
    ) -> Completed:
        """Run the program once, from `main` to its end.

        `dirs` are folders that the program may read and change: paths, or a mapping from paths to what the program calls them. `timeout` is
        in seconds; a program that takes longer raises `ProgramTimeout`. With `check`, one that fails raises `ProgramError`. With `text`, what
        it prints is `str`. `threads` limits those of a program with threads.

        >>> import gpu_run
        >>> hello = gpu_run.Program(gpu_run.examples.HELLO, device="cpu")
        >>> hello.run().stdout
        b'hello\\n'
        """
        given, arguments = _given(args, env, dirs, read_only_dirs, timeout, max_memory, None)
        ended = self._native.run(_bytes(stdin), given, threads)
        returncode, stdout, stderr, error, is_late = ended
        if is_late:
            raise ProgramTimeout(f"did not finish within {_seconds(timeout)} s", returncode, stdout, stderr)
        done = Completed(self._args + arguments, returncode, stdout, stderr, error)
        if check:
            done.check_returncode()
        if text:
            done.stdout, done.stderr = stdout.decode(), stderr.decode()
        return done

    def map(
        self,
        records: Records,
        args: Iterable[str] = (),
        env: Mapping[str, str] | None = None,
        dirs: Dirs = (),
        *,
        read_only_dirs: Dirs = (),
        column: str | None = None,
        timeout: Timeout = None,
        max_memory: int | None = None,
        batch: int | None = None,
        text: bool = False,
        strip_newline: bool = False,
        on_error: OnError = "raise",
        progress: Progress = False,
    ) -> Outputs:
        """Run the program for each record, which is its standard input; return what each run prints, in the records' order.

        `records` are

        - an iterable of `bytes` or `str`; it need not end, and is read some batches ahead of the outputs;
        - the path of a file, or a file: each line is a record, with its newline;
        - a column of text or bytes from pyarrow, Polars, pandas, DuckDB or whatever else offers Arrow's arrays: without a copy. Of a table,
          `column` names the column.

        A record that is `None` or null is not run, and its output is `None`.

        A record that fails raises a `ProgramError` with the number of the record, after the outputs of those before it; with
        `on_error="return"`, the error is returned in the place of the output, and the others go on. `timeout` is for the records that run at
        once together; `batch` is their number: 131,072 on a GPU, 1,024 on `cpu`. `strip_newline` removes one newline from the end of each
        output. `progress` is called with the numbers of records done and failed; `True` shows them, with tqdm if it is installed.

        >>> import gpu_run
        >>> upper = gpu_run.Program(gpu_run.examples.UPPER, device="cpu")
        >>> list(upper.map(["one", b"two", None], text=True))
        ['ONE', 'TWO', None]
        """
        given, _ = _given(args, env, dirs, read_only_dirs, timeout, max_memory, batch)
        tell = callback(progress, _length(records))
        return self._native.map(records, column, given, text, strip_newline, _returns(on_error), tell)

    def map_column(
        self,
        records: Records,
        args: Iterable[str] = (),
        env: Mapping[str, str] | None = None,
        dirs: Dirs = (),
        *,
        type: ArrayType = "string",
        read_only_dirs: Dirs = (),
        column: str | None = None,
        timeout: Timeout = None,
        max_memory: int | None = None,
        batch: int | None = None,
        strip_newline: bool = True,
        on_error: OnError = "raise",
        progress: Progress = False,
    ) -> Array:
        """Like `map`, but collect the outputs in a column, which other libraries take without a copy.

        With `on_error="return"`, a record that failed is null, and the column's `errors` say why.

        >>> import gpu_run
        >>> upper = gpu_run.Program(gpu_run.examples.UPPER, device="cpu")
        >>> column = upper.map_column(["one", "two", None])
        >>> column, column.to_pylist()
        (<gpu_run.Array of 3 values, string>, ['ONE', 'TWO', None])
        """
        given, _ = _given(args, env, dirs, read_only_dirs, timeout, max_memory, batch)
        tell = callback(progress, _length(records))
        return self._native.map_column(records, column, given, type, strip_newline, _returns(on_error), tell)

    def function(
        self,
        name: str,
        params: Sequence[str] | None = None,
        results: str | Sequence[str] | None = None,
        *,
        timeout: Timeout = None,
        max_memory: int | None = None,
    ) -> Function:
        """Return an exported function of numbers, to be called with columns.

        `params` and `results` say what its integers are: `"i32"`, `"u32"`, `"i64"`, `"u64"` or `"bool"`; floats are `"f32"` and `"f64"`.
        Without `params`, integers are taken with any sign; without `results`, they have one.

        >>> import gpu_run
        >>> mean = gpu_run.Program(gpu_run.examples.MEAN, device="cpu").function("mean")
        >>> mean([1.0, 10.0, None], [2.0, 20.0, 3.0]).to_pylist()
        [1.5, 15.0, None]
        >>> mean([1.0, 2.0], 0).to_pylist()
        [0.5, 1.0]
        """
        given, _ = _given((), None, (), (), timeout, max_memory, None)
        if isinstance(results, str):
            results = [results]
        names = None if params is None else list(params)
        return Function(self._native.function(name, names, None if results is None else list(results), given))

    @property
    def udfs(self) -> list[str]:
        """The signatures of the functions that were made with the Rust crate arrow-udf, such as `gcd(int32,int32)->int32`."""
        return self._native.udfs

    def udf(self, name: str, *, timeout: Timeout = None, max_memory: int | None = None) -> Function:
        """Return a function of the module, to be called with columns.

        `name` is that of a function made with arrow-udf (`#[function("gcd(int, int) -> int")]`), over numbers, text, bytes, dates, lists
        and structs; or, where several have one name, a signature: `"gcd(int, int)"`, `"gcd(int, int) -> int"`. If none has it, it is the
        name of an exported function of numbers, as with `function(name)`.

        `timeout` is for the rows that run at once together.
        """
        given, _ = _given((), None, (), (), timeout, max_memory, None)
        native = self._native.udf(name, given)
        return self.function(name, timeout=timeout, max_memory=max_memory) if native is None else Function(native)


class Function:
    """A function, called for each row of columns.

    A column is anything that offers Arrow's arrays, or an iterable of Python's values; a number, text or bytes are the same in each row.
    A table stands for its columns. A row with a null is not run, and its result is null, unless the function takes nulls itself.
    """

    def __init__(self, native: _native.Function | _native.ArrowFunction) -> None:
        self._native = native

    @property
    def name(self) -> str:
        return self._native.name

    @property
    def signatures(self) -> list[str]:
        """The function's types; several, if functions made with arrow-udf have one name: the columns of a call choose one of them."""
        return [signature for signature, _, _ in self._native.signatures]

    @property
    def params(self) -> list[str]:
        """The types of the parameters."""
        return self._only()[1]

    @property
    def results(self) -> list[str]:
        """The types of the results."""
        results = self._only()[2]
        return [results] if isinstance(results, str) else results

    def _only(self) -> tuple[str, list[str], str | list[str]]:
        several = self._native.signatures
        if len(several) > 1:
            raise ValueError(f"`{self.name}` has several types: " + ", ".join(self.signatures))
        return several[0]

    def __call__(self, *columns: Column, on_error: OnError = "raise") -> Any:
        """Call the function for each row; return the column of its results, or, if it has several, a tuple of columns.

        A table function (`-> setof int`) has any number of results for a row: its column is of structs, or a table, of the rows' numbers,
        from 0, and the results.

        A row that fails raises a `ProgramError` with the number of the row, or an `Error` with what the function returned; with
        `on_error="return"`, its result is null, and the column's `errors` say why.
        """
        arrays = self._native.call(*columns, returns_errors=_returns(on_error))
        return arrays[0] if len(arrays) == 1 else tuple(arrays)

    def __repr__(self) -> str:
        return f"<gpu_run.Function {', '.join(self.signatures)}>"


def _bytes(value: bytes | bytearray | memoryview | str | None) -> bytes:
    if value is None:
        return b""
    return value.encode() if isinstance(value, str) else bytes(value)


def _seconds(timeout: Timeout) -> float | None:
    return timeout.total_seconds() if isinstance(timeout, timedelta) else timeout


def _returns(on_error: str) -> bool:
    if on_error not in ("raise", "return"):
        raise ValueError(f'on_error is "raise" or "return", not {on_error!r}')
    return on_error == "return"


def _length(records: object) -> int | None:
    if isinstance(records, (str, os.PathLike)):
        return None
    length = cast(Callable[[], int] | None, getattr(records, "__len__", None))
    return None if length is None else length()


def _folders(dirs: Dirs, writes: bool) -> list[tuple[str, str, bool]]:
    if isinstance(dirs, (str, os.PathLike)):
        raise TypeError("dirs is a list of folders, or a mapping from folders to what the program calls them")
    if isinstance(dirs, Mapping):
        return [(os.fspath(host), guest, writes) for host, guest in dirs.items()]
    return [(os.fspath(host), os.fspath(host), writes) for host in dirs]


def _given(
    args: Iterable[str],
    env: Mapping[str, str] | None,
    dirs: Dirs,
    read_only_dirs: Dirs,
    timeout: Timeout,
    max_memory: int | None,
    batch: int | None,
) -> tuple[_native._Given, list[str]]:
    if isinstance(args, (str, bytes)):
        raise TypeError("args is a list of arguments")
    arguments = [os.fspath(arg) for arg in args]
    folders = _folders(dirs, True) + _folders(read_only_dirs, False)
    return (arguments, list((env or {}).items()), folders, _seconds(timeout), max_memory, batch), arguments
