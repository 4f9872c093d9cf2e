"""Programs as steps of Ray Data."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from . import _native
from ._checkpoint import Checkpoint
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
    checkpoint: Path | None = None,
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
    says why. `id_column` is the column whose value an error names the record by.

    `checkpoint` is a folder that all nodes see, where actors keep what is done, by the values of `id_column`, before they hand it on. A job
    that was killed and is started again, with the same folder, takes it from there, and runs only the other records. Each record needs an
    id of its own, an integer or text, by which it is known again, in whatever order and batches it comes. Records that failed run again.

    The other arguments are those of `Program.map_column`.
    """
    wasm = source if isinstance(source, bytes) else _native.compile(source, bin)[0]
    arguments, variables = list(args), dict(env or {})
    if checkpoint is not None and id_column is None:
        raise ValueError("checkpoint= needs id_column=, the column that records are known again by")
    folder = None if checkpoint is None else os.path.abspath(checkpoint)
    program = hashlib.sha256(wasm).digest(), arguments, sorted(variables.items()), column, type
    made_by = hashlib.sha256(repr(program).encode()).hexdigest()

    class Actor:
        def __init__(self) -> None:
            self.program = Program(wasm, device=device)
            self.checkpoint = None if folder is None else Checkpoint(folder, made_by)

        def __call__(self, table: Any) -> Any:
            pyarrow = import_module("pyarrow")
            if self.checkpoint is None:
                outputs, messages = self.run(table)
            else:
                outputs, messages = self.run_rest(table, self.checkpoint)
            table = table.append_column(output, outputs)
            if on_error == "return":
                table = table.append_column(errors, pyarrow.array(messages, pyarrow.string()))
            return table

        def run(self, table: Any) -> tuple[Any, list[str | None]]:
            """Run the program for each row; return the outputs, and what is wrong with some."""
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
            return import_module("pyarrow").array(found), messages

        def run_rest(self, table: Any, checkpoint: Checkpoint) -> tuple[Any, list[str | None]]:
            """Run the program for the rows that are not done, and keep what it prints."""
            pyarrow, compute = import_module("pyarrow"), import_module("pyarrow.compute")
            ids = table.column(id_column)
            done = checkpoint.find(ids)
            if done is None:
                is_left = pyarrow.array([True] * len(table), pyarrow.bool_())
            else:
                is_left = compute.invert(compute.is_in(ids, value_set=done["id"]))
            left = table.filter(is_left)
            outputs, of_left = self.run(left)
            succeeded = pyarrow.array([message is None for message in of_left], pyarrow.bool_())
            checkpoint.keep(left.column(id_column).filter(succeeded), outputs.filter(succeeded))
            if done is None:
                return outputs, of_left
            # Those that were done and the others, in the order of the rows.
            rest = iter(of_left)
            messages = [next(rest) if is_left_row else None for is_left_row in is_left.to_pylist()]
            known = pyarrow.chunked_array(done["id"].chunks + left.column(id_column).chunks, ids.type)
            values = pyarrow.chunked_array(done["output"].chunks + [outputs], outputs.type)
            return values.take(compute.index_in(ids, value_set=known)), messages

    return Actor
