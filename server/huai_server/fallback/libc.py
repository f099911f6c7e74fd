"""The C library, for calls that Python does not have."""

import ctypes
import os
from functools import cache


@cache
def library() -> ctypes.CDLL:
    """Its functions; one that fails leaves the reason to `last_error`."""
    return ctypes.CDLL(None, use_errno=True)


def last_error() -> OSError:
    """Why the last call of this thread failed."""
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


def call(name: str, *arguments: object) -> None:
    """Call a function that returns 0; raises `OSError` if it returns anything else."""
    if getattr(library(), name)(*arguments):
        raise last_error()
