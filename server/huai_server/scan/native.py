"""The compiled scanner (c/scanner.h), loaded with ctypes.

Its threads read directories ahead while Python works on earlier ones; Python slices a few bytes for
each directory.  Rule to keep: `_HEADER` and the structures have to equal those of the C header; a
test compares the results with those of `python.py`.
"""

import ctypes
import os
import struct
from collections.abc import Iterator
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from huai_schema.codec.listing import Listing
from huai_schema.limits import PATH_BYTES
from huai_schema.paths import RelPath, join
from huai_server.scan import exclude
from huai_server.scan.types import (
    KEEPS_CHANGING,
    LEFT_OUT,
    OUT_OF_RANGE,
    RESERVED,
    TEMPORARY,
    TIME,
    TOO_LARGE,
    Problem,
    ScanError,
    ScannedDirectory,
    ScanOptions,
    Unreadable,
    owner_error,
    root_error,
)

_HEADER = struct.Struct("<QQQQQiIIIII")
_PROBLEM = struct.Struct("<iI")
_REASONS = {
    -1: KEEPS_CHANGING,
    -2: OUT_OF_RANGE,
    -3: TOO_LARGE,
    -4: TIME,
    -5: RESERVED,
    -6: TEMPORARY,
}


class _Pattern(ctypes.Structure):
    _fields_ = (
        ("glob", ctypes.c_char_p),
        ("anchored", ctypes.c_uint8),
        ("directories", ctypes.c_uint8),
    )


class _Options(ctypes.Structure):
    _fields_ = (
        ("patterns", ctypes.POINTER(_Pattern)),
        ("pattern_count", ctypes.c_size_t),
        ("threads", ctypes.c_uint32),
        ("path_bytes", ctypes.c_uint32),
        ("one_file_system", ctypes.c_uint8),
        ("owners", ctypes.c_uint8),
    )


@cache
def scanner() -> ctypes.CDLL | None:
    """The compiled scanner, or None where it was not built."""
    for suffix in EXTENSION_SUFFIXES:
        path = Path(__file__).with_name(f"_scanner{suffix}")
        if path.exists():
            return _load(path)
    return None


def _load(path: Path) -> ctypes.CDLL:
    loaded = ctypes.CDLL(str(path))
    length, error = ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_int)
    loaded.huai_scan_open.argtypes = [ctypes.c_char_p, ctypes.POINTER(_Options), error]
    loaded.huai_scan_open.restype = ctypes.c_void_p
    loaded.huai_scan_next.argtypes = [ctypes.c_void_p, length, error]
    loaded.huai_scan_next.restype = ctypes.c_void_p
    loaded.huai_scan_close.argtypes = [ctypes.c_void_p]
    loaded.huai_scan_close.restype = None
    return loaded


def scan(
    loaded: ctypes.CDLL, root: Path, options: ScanOptions
) -> Iterator[ScannedDirectory | Unreadable]:
    """Every directory below `root` in tree order, as `huai_server.scan.scan` describes it."""
    native_options = _options(options)
    failure = ctypes.c_int(0)
    handle = loaded.huai_scan_open(
        os.fsencode(root), ctypes.byref(native_options), ctypes.byref(failure)
    )
    if not handle:
        raise root_error(root, OSError(failure.value, os.strerror(failure.value)))
    try:
        yield from _frames(loaded, handle)
    finally:
        loaded.huai_scan_close(handle)


def _options(options: ScanOptions) -> _Options:
    parsed = [exclude.parse_exclude(text) for text in options.exclude]
    patterns = (_Pattern * len(parsed))(*(_Pattern(*pattern) for pattern in parsed))
    return _Options(
        patterns,
        len(parsed),
        max(1, options.threads),
        PATH_BYTES,
        options.one_file_system,
        options.owners,
    )


def _frames(loaded: ctypes.CDLL, handle: int) -> Iterator[ScannedDirectory | Unreadable]:
    length = ctypes.c_size_t(0)
    failure = ctypes.c_int(0)
    while address := loaded.huai_scan_next(handle, ctypes.byref(length), ctypes.byref(failure)):
        # The scanner uses this memory again at the next call, so every value below is a copy.
        memory = (ctypes.c_char * length.value).from_address(address)
        with memoryview(memory) as view:
            yield from _batch(view)
    if failure.value < 0:
        raise owner_error(OSError(-failure.value, os.strerror(-failure.value)))
    if failure.value:
        raise ScanError(
            f"the scan ran out of memory or of open files ({os.strerror(failure.value)})",
            hint="raise the limits of the process, or use fewer threads",
        )


def _batch(view: memoryview) -> Iterator[ScannedDirectory | Unreadable]:
    at = 0
    while at < len(view):
        header: tuple[int, ...] = _HEADER.unpack_from(view, at)
        leaves, identities, problems, device, inode = header[:5]
        reason, path_length, attributes, skipped, hardlinks, unreadable = header[5:]
        at += _HEADER.size
        path = RelPath(bytes(view[at : (end := at + path_length)]))
        if reason:
            yield Unreadable(path, _reason(reason))
            at = end
            continue
        listing = Listing(
            path,
            bytes(view[end : (at := end + attributes)]),
            bytes(view[at : (end := at + leaves)]),
        )
        yield ScannedDirectory(
            listing,
            bytes(view[end : (at := end + identities)]),
            bool(hardlinks),
            skipped,
            *_sorted(_problems(path, view[at : at + problems])) if problems else ((), ()),
            unreadable,
            device,
            inode,
        )
        at += problems


def _problems(directory: RelPath, view: memoryview) -> Iterator[Problem]:
    at = 0
    while at < len(view):
        reason, length = _PROBLEM.unpack_from(view, at)
        at += _PROBLEM.size
        name = bytes(view[at : at + length])
        yield Problem(join(directory, name) if name else directory, _reason(reason))
        at += length


def _sorted(found: Iterator[Problem]) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    """Tell problems from what is left out."""
    everything = list(found)
    problems = tuple(each for each in everything if each.reason not in LEFT_OUT)
    return problems, tuple(each for each in everything if each.reason in LEFT_OUT)


def _reason(number: int) -> str:
    return os.strerror(number) if number > 0 else _REASONS[number]
