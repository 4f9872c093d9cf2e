# The part of gpu_run that is written in Rust; gpu_run's own functions call it.

import os
from collections.abc import Callable, Iterator
from typing import Any, final

_Given = tuple[
    list[str], list[tuple[str, str]], list[tuple[str, str, bool]], float | None, int | None, int | None
]
_Progress = Callable[[int, int], object] | None

__all__ = ["Array", "ArrowFunction", "Function", "Outputs", "Program", "compile", "devices", "settle"]

def devices() -> tuple[list[tuple[str, str, int, int, int]], str | None]: ...
def settle(seconds: float) -> None: ...
def compile(path: str | os.PathLike[str], bin: str | None = None) -> tuple[bytes, str]: ...
@final
class Array:
    """A column of results, which other libraries take without a copy, through Arrow's PyCapsule interface."""

    @property
    def type(self) -> str: ...
    @property
    def null_count(self) -> int: ...
    @property
    def errors(self) -> list[Exception]: ...
    def __len__(self) -> int: ...
    def to_pylist(self) -> list[Any]: ...
    def to_pyarrow(self) -> Any: ...
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[Any, Any]: ...
    def __arrow_c_schema__(self) -> Any: ...

@final
class Outputs:
    """What a program printed for each record, in the records' order."""

    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...
    def close(self) -> None: ...

@final
class Function:
    @property
    def name(self) -> str: ...
    @property
    def signatures(self) -> list[tuple[str, list[str], str | list[str]]]: ...
    def call(self, *columns: object, returns_errors: bool = False) -> list[Array]: ...

@final
class ArrowFunction:
    @property
    def name(self) -> str: ...
    @property
    def signatures(self) -> list[tuple[str, list[str], str | list[str]]]: ...
    def call(self, *columns: object, returns_errors: bool = False) -> list[Array]: ...

@final
class Program:
    def __new__(
        cls,
        wasm: bytes,
        name: str,
        argv0: str,
        device: str,
        cache: bool | str | os.PathLike[str] | None = None,
    ) -> Program: ...
    @property
    def device(self) -> str: ...
    @property
    def functions(self) -> list[tuple[str, str]]: ...
    def run(
        self, stdin: bytes, given: _Given, threads: int | None
    ) -> tuple[int, bytes, bytes, str | None, bool]: ...
    def map(
        self,
        records: object,
        column: str | None,
        given: _Given,
        as_text: bool,
        strips_newline: bool,
        returns_errors: bool,
        progress: _Progress,
    ) -> Outputs: ...
    def map_column(
        self,
        records: object,
        column: str | None,
        given: _Given,
        kind: str,
        strips_newline: bool,
        returns_errors: bool,
        progress: _Progress,
    ) -> Array: ...
    def function(
        self, name: str, params: list[str] | None, results: list[str] | None, given: _Given
    ) -> Function: ...
    @property
    def udfs(self) -> list[str]: ...
    def udf(self, name: str, given: _Given) -> ArrowFunction | None: ...
