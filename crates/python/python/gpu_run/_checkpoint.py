"""Outputs kept in a folder, so that a job that is started again continues where it was."""

from __future__ import annotations

import json
import os
import uuid
from importlib import import_module
from typing import Any

from ._errors import Error

__all__ = ["Checkpoint"]

_MADE_BY, _RANGE = b"gpu_run.made_by", b"gpu_run.range"


class Checkpoint:
    """The outputs of records that are done, by the records' ids: Arrow files, one for each batch.

    A file gets its name only when it is whole, so that whoever is killed leaves nothing but outputs that can be used. Several processes can use
    one folder at once.
    """

    def __init__(self, folder: str, made_by: str) -> None:
        self._arrow = import_module("pyarrow")
        self._compute = import_module("pyarrow.compute")
        self._folder, self._made_by = folder, made_by
        # The first and the last id of each file.
        self._ranges: dict[str, list[Any]] = {}
        os.makedirs(folder, exist_ok=True)

    def find(self, ids: Any) -> Any:
        """Return a table of the ids among these whose records are done, each once, and their outputs; `None` if there are none."""
        if len(ids) == 0:
            return None
        self._check(ids)
        self._look()
        first, last = (value.as_py() for value in self._compute.min_max(ids).values())
        found = []
        for name, (least, most) in self._ranges.items():
            if type(least) is not type(first):
                raise Error(f"{self._folder} has outputs of records with other ids, such as {least!r}")
            if len(ids) == 0 or least > last or most < first:
                continue
            table = self._open(name).read_all()
            table = table.filter(self._compute.is_in(table["id"], value_set=ids))
            # Two actors have done the same records if Ray took one of them for dead.
            ids = ids.filter(self._compute.invert(self._compute.is_in(ids, value_set=table["id"])))
            found.append(table)
        tables = [table for table in found if len(table)]
        return self._arrow.concat_tables(tables) if tables else None

    def keep(self, ids: Any, outputs: Any) -> None:
        """Keep the outputs of records."""
        if len(ids) == 0:
            return
        ends = [value.as_py() for value in self._compute.min_max(ids).values()]
        table = self._arrow.table({"id": ids, "output": outputs})
        table = table.replace_schema_metadata({_MADE_BY: self._made_by, _RANGE: json.dumps(ends)})
        sink = self._arrow.BufferOutputStream()
        with self._arrow.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        name = uuid.uuid4().hex
        part = os.path.join(self._folder, f".{name}.part")
        try:
            with open(part, "xb") as file:
                file.write(sink.getvalue())
                file.flush()
                os.fsync(file.fileno())
            # If the name is lost with the machine, the records run again.
            os.replace(part, os.path.join(self._folder, f"{name}.arrow"))
        except BaseException:
            if os.path.exists(part):
                os.remove(part)
            raise

    def _check(self, ids: Any) -> None:
        types = self._arrow.types
        if not (types.is_integer(ids.type) or types.is_string(ids.type) or types.is_large_string(ids.type)):
            raise Error(f"with a checkpoint, ids are integers or text, but the column has the type {ids.type}")
        if ids.null_count or self._compute.count_distinct(ids).as_py() != len(ids):
            raise Error("with a checkpoint, each record needs an id of its own, but two are equal, or one is null")

    def _look(self) -> None:
        """Look for files that have come since."""
        for entry in os.scandir(self._folder):
            if entry.name.startswith(".") or entry.name in self._ranges:
                continue
            try:
                metadata = self._open(entry.name).schema.metadata or {}
            except (self._arrow.ArrowInvalid, OSError) as error:
                raise Error(f"{entry.path} is no file of a checkpoint: name another folder ({error})") from error
            if metadata.get(_MADE_BY) != self._made_by.encode():
                what = "made by another program, or with other arguments or types"
                raise Error(f"{entry.path} was {what}: remove the folder, or name another one")
            self._ranges[entry.name] = json.loads(metadata[_RANGE])

    def _open(self, name: str) -> Any:
        return self._arrow.ipc.open_file(self._arrow.memory_map(os.path.join(self._folder, name)))
