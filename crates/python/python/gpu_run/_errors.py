"""What can go wrong."""

from __future__ import annotations

__all__ = ["Error", "ProgramError", "ProgramTimeout"]


class Error(Exception):
    """Something could not be done; the base of all errors of gpu-run.

    `record` is the number of the record at fault, from 0, if it is one record's.
    """

    record: int | None = None


class ProgramError(Error):
    """A program did not end well: it exited with another code than 0, or trapped.

    >>> import gpu_run
    >>> broken = gpu_run.Program(b'(module (func (export "_start") unreachable))', device="cpu")
    >>> try:
    ...     list(broken.map(["a record"]))
    ... except gpu_run.ProgramError as error:
    ...     print(error.record, error.returncode, error.message)
    0 134 trapped: unreachable
      in _start (function 0), at offset 0x23
    """

    def __init__(
        self,
        message: str,
        returncode: int,
        stdout: bytes = b"",
        stderr: bytes = b"",
        record: int | None = None,
    ) -> None:
        super().__init__(message, returncode, stdout, stderr, record)
        self.message = message
        self.returncode = returncode
        self.stdout = stdout
        self.stderr = stderr
        self.record = record

    def __str__(self) -> str:
        who = "the program" if self.record is None else f"record {self.record}"
        said = self.stderr.decode(errors="replace").strip()
        return f"{who} {self.message}" + (f"\n{said}" if said else "")


class ProgramTimeout(ProgramError, TimeoutError):
    """A program, or the records that ran with one, took longer than `timeout`."""
