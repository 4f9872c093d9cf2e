"""Runs ordinary programs, compiled to WebAssembly, on the GPU: once, or once for each of millions of records.

>>> import gpu_run
>>> upper = gpu_run.Program(gpu_run.examples.UPPER, device="cpu")
>>> upper.run(stdin="hello").stdout
b'HELLO'
>>> for output in upper.map(["one", "two"], text=True):
...     print(output)
ONE
TWO

A program is a file that a compiler made, such as `gpu_run.Program("app.wasm")`; `"app.rs"` and the folder of a Cargo package are compiled
first. Without a GPU, programs run on the built-in device `cpu`, which executes the same code.
"""

from __future__ import annotations

import atexit
from typing import NamedTuple

from . import _native, examples
from ._errors import Error, ProgramError, ProgramTimeout
from ._native import Array, Outputs
from ._program import Completed, Function, Program

__all__ = [
    "Array",
    "Completed",
    "Device",
    "Error",
    "Function",
    "Outputs",
    "Program",
    "ProgramError",
    "ProgramTimeout",
    "devices",
    "examples",
]

# A process that ends in the middle of a launch would leave the GPU's driver in the middle of a call.
atexit.register(_native.settle, 2.0)


class Device(NamedTuple):
    """A device that programs can run on."""

    name: str
    """What `Program(device=…)` takes: `cpu`, `cuda:0`."""
    description: str
    target: int
    """The highest PTX target: 90 for `sm_90`."""
    processors: int
    memory: int
    """Bytes."""


def devices() -> list[Device]:
    """Return the devices of this machine: `cpu`, and GPUs.

    >>> import gpu_run
    >>> [device.name for device in gpu_run.devices()][0]
    'cpu'
    """
    found, _ = _native.devices()
    return [Device(*row) for row in found]
