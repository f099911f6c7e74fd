"""The compiled maker (c/maker.h), loaded with ctypes: entries by the hundred thousand."""

import ctypes
import os
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Self

from huai_schema.errors import ExitCode, HuaiError


class MakerMissingError(HuaiError):
    """The compiled part was not built."""

    exit_code = ExitCode.REQUIREMENT


class Maker:
    """Carries out records (`records.Records`) below one directory, until it is closed."""

    def __init__(self, root: Path, building: Path | None = None) -> None:
        """With a `building` folder entries are renamed to their places; else made there."""
        failure = ctypes.c_int(0)
        folder = None if building is None else os.fsencode(building)
        self._root = root
        self._handle = _library().huai_maker_open(os.fsencode(root), folder, ctypes.byref(failure))
        if not self._handle:
            raise OSError(failure.value, os.strerror(failure.value), str(root))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        _library().huai_maker_close(self._handle)

    def apply(self, records: bytes) -> None:
        """Carry out all records in order; an `OSError` names the path at which that ended."""
        self._check(_library().huai_maker_apply(self._handle, records, len(records)))

    def leave(self) -> None:
        """Restore the times of the last directory that was entered."""
        self._check(_library().huai_maker_leave(self._handle))

    @property
    def unowned(self) -> int:
        """How many entries could not be given their owner."""
        return int(_library().huai_maker_unowned(self._handle))

    def _check(self, error: int) -> None:
        if error:
            path = os.fsdecode(_library().huai_maker_failure(self._handle))
            raise OSError(error, os.strerror(error), str(self._root / path))


@cache
def _library() -> ctypes.CDLL:
    for suffix in EXTENSION_SUFFIXES:
        path = Path(__file__).with_name(f"_maker{suffix}")
        if path.exists():
            return _load(path)
    raise MakerMissingError(
        "attr trees need huai's compiled part, which was not built",
        hint="install a C compiler, then install huai again",
    )


def _load(path: Path) -> ctypes.CDLL:
    loaded = ctypes.CDLL(str(path))
    error = ctypes.POINTER(ctypes.c_int)
    loaded.huai_maker_open.argtypes = [ctypes.c_char_p, ctypes.c_char_p, error]
    loaded.huai_maker_open.restype = ctypes.c_void_p
    loaded.huai_maker_apply.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
    loaded.huai_maker_failure.argtypes = [ctypes.c_void_p]
    loaded.huai_maker_failure.restype = ctypes.c_char_p
    loaded.huai_maker_leave.argtypes = [ctypes.c_void_p]
    loaded.huai_maker_unowned.argtypes = [ctypes.c_void_p]
    loaded.huai_maker_unowned.restype = ctypes.c_uint64
    loaded.huai_maker_close.argtypes = [ctypes.c_void_p]
    loaded.huai_maker_close.restype = None
    return loaded
