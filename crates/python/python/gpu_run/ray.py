"""Programs as steps of Ray Data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from . import _native
from ._errors import Error
from ._program import ArrayType, OnError, Path, Program, Timeout

__all__ = ["Mapper"]


def Mapper(
    source: Path | bytes,
    *,
    column: str,
    output: str = "output",
    errors: str = "error",
    id_column: str | None = None,
    args: Iterable[str] = (),
    env: Mapping[str, str] | None = None,
    type: ArrayType = "string",
    on_error: OnError = "raise",
    device: str = "auto",
    bin: str | None = None,
    timeout: Timeout = None,
    max_memory: int | None = None,
    batch: int | None = None,
) -> Any:
    """Return a class of actors for `Dataset.map_batches` that run a program for each value of a column.

        ds.map_batches(
            gpu_run.ray.Mapper("app.wasm", column="text"),
            batch_format="pyarrow", batch_size=100_000, num_gpus=1, concurrency=8,
        )

    Each actor loads the program once. The file is read here: the nodes of the cluster need gpu-run, but not the file. What the program prints is
    the column `output`, beside the others. With `on_error="return"`, the output of a record that failed is null, and the column `errors`
    says why. `id_column` is the column whose value an error names the record by. The other arguments are those of `Program.map_column`.
    """
    wasm = source if isinstance(source, bytes) else _native.compile(source, bin)[0]
    arguments, variables = list(args), dict(env or {})

    class Actor:
        def __init__(self) -> None:
            self.program = Program(wasm, device=device)

        def __call__(self, table: Any) -> Any:
            pyarrow = import_module("pyarrow")
            found = self.program.map_column(
                table,
                arguments,
                variables,
                column=column,
                type=type,
                timeout=timeout,
                max_memory=max_memory,
                batch=batch,
                on_error="return",
            )
            messages: list[str | None] = [None] * len(table)
            for error in found.errors:
                row = error.record if isinstance(error, Error) and error.record is not None else 0
                name = row if id_column is None else table.column(id_column)[row].as_py()
                messages[row] = f"record {name}: {getattr(error, 'message', error)}"
                if on_error == "raise":
                    raise Error(messages[row])
            table = table.append_column(output, pyarrow.array(found))
            if on_error == "return":
                table = table.append_column(errors, pyarrow.array(messages, pyarrow.string()))
            return table

    return Actor
