"""How far it is, in notebooks and terminals."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

__all__ = ["Progress", "callback"]

Progress = bool | Callable[[int, int], object]


def callback(progress: Progress, total: int | None) -> Callable[[int, int], object] | None:
    """Return what is to be called with the numbers of records that are done, and of those that failed."""
    if callable(progress):
        return progress
    if not progress:
        return None
    try:
        tqdm = import_module("tqdm.auto").tqdm
    except ImportError:
        return _Line(total)
    return _Bar(tqdm(total=total, unit=" records", unit_scale=True))


class _Bar:
    def __init__(self, bar: Any) -> None:
        self.bar = bar

    def __call__(self, done: int, failed: int) -> None:
        self.bar.update(done - self.bar.n)
        if failed:
            self.bar.set_postfix(failed=failed)
        if done == self.bar.total:
            self.bar.close()


class _Line:
    def __init__(self, total: int | None) -> None:
        self.of = "" if total is None else f" of {total:,}"

    def __call__(self, done: int, failed: int) -> None:
        also = f", {failed:,} failed" if failed else ""
        sys.stderr.write(f"\r{done:,}{self.of} records{also}")
        sys.stderr.flush()
