"""A process that may open no more files: that is the fault of none of the files it looks at."""

import errno
import gc
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from huai_native import _native
from tests.support.two_threads import listing_of

READ = (b"file", 1, 1, bytes(32))


@contextmanager
def no_open_files() -> Iterator[None]:
    """Let this process open no file that it has not open yet."""
    gc.collect()  # what earlier tests left open must not be closed in the middle of the call
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def scan(tree: Path) -> Callable[[], object]:
    reader = _native.TreeReader(
        os.fsencode(tree), ([], 2, True, False, None), None, None, lambda _, cause: cause
    )
    return lambda: reader.read_whole(
        None, (set(), False, True), lambda _: None, None, (b"", [], None)
    )


def scrub(tree: Path) -> Callable[[], object]:
    opened = _native.Scrub(os.fsencode(tree))
    return lambda: opened.read([READ], _native.Pace(0, None))


def compare(tree: Path) -> Callable[[], object]:
    handle, rule = os.open(tree, os.O_RDONLY | os.O_DIRECTORY), (0o7777, 0)
    comparison = _native.TreeComparison(
        handle,
        (object(), 1000, [listing_of(tree)]),  # type: ignore[arg-type]
        ([], (rule, rule, False)),
        scope=(b"", set(), b""),
        owners=None,
        content=False,
        opens_up=False,
        threads=1,
    )
    os.close(handle)
    return lambda: comparison.batch(100, 100)


@pytest.mark.parametrize("make", [scan, scrub, compare])
def test_a_shortage_of_handles_ends_the_call(
    make: Callable[[Path], Callable[[], object]], tmp_path: Path
) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "file").write_bytes(b"1")
    call = make(tmp_path)
    with pytest.raises(OSError, match="Too many open files") as raised, no_open_files():
        call()
    assert raised.value.errno == errno.EMFILE
