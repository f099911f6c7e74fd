"""Calls of the C library that Python does not offer."""

import ctypes
import os
from functools import cache


@cache
def library() -> ctypes.CDLL:
    """Load the C library, whose errno `last_error` returns."""
    return ctypes.CDLL(None, use_errno=True)


def last_error() -> OSError:
    """Return the error of this thread's last call."""
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


def call(name: str, *arguments: object) -> None:
    """Call a function of the C library; raises `OSError` by errno unless it returns 0."""
    if getattr(library(), name)(*arguments):
        raise last_error()
