"""Names of owners that cannot be looked up, by a process whose user database is another one."""

import ctypes
import errno
import os
from pathlib import Path

import pytest

from huai_server.scan.types import ScanOptions
from tests.support.mounting import needs_mounts
from tests.support.scanned import listings, scan
from tests.support.unprivileged import as_nobody, in_child

DENIED = "Permission denied"


@pytest.fixture
def open_path(short_path: Path) -> Path:
    """A folder that a process without privileges can reach."""
    short_path.chmod(0o755)
    return short_path


def answered_by_files_only(folder: Path) -> None:
    """From here on this process has its names from files alone, and only root may read those."""
    libc = ctypes.CDLL(None, use_errno=True)
    new_mounts, recursive_private, bind = 0x20000, 1 << 18 | 1 << 14, 1 << 12
    assert libc.unshare(new_mounts) == 0
    # In a chroot the root is not a mount point, and nothing to make private.
    private = libc.mount(b"none", b"/", None, recursive_private, None)
    assert private == 0 or ctypes.get_errno() == errno.EINVAL
    for name, content in (("nsswitch.conf", "passwd: files\ngroup: files\n"), ("passwd", "")):
        (folder / name).write_text(content)
        (folder / name).chmod(0o644 if content else 0o600)
        source, place = os.fsencode(folder / name), os.fsencode(f"/etc/{name}")
        assert libc.mount(source, place, None, bind, None) == 0, os.strerror(ctypes.get_errno())


@needs_mounts
def test_an_id_does_not_take_the_place_of_a_name_that_cannot_be_looked_up(open_path: Path) -> None:
    """Else one commit would give all files to '#1000', and the next one back."""
    tree = open_path / "tree"
    tree.mkdir()
    os.chown(tree, 1, 1)
    scan(open_path, ScanOptions(owners=False))

    def look() -> None:
        answered_by_files_only(open_path)
        as_nobody(lambda: scan(tree))

    with pytest.raises(AssertionError, match=f"ScanError.*owner.*{DENIED}"):
        in_child(look)
    # An id without a name is an answer.
    os.chown(tree, 54_321, 54_321)
    assert listings(tree)[0].attributes.endswith(b"\tu#54321\tg#54321")
