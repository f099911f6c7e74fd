"""Finding out whether images can be mounted here, by mounting one."""

import os
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory

from huai_schema.codec.lines import encode_directory
from huai_schema.codec.listing import Listing
from huai_schema.entries import Directory
from huai_schema.paths import ROOT
from huai_server.errors import storage_errors
from huai_server.fallback.erofs.image import write_image
from huai_server.fallback.erofs.mounting import MountError, mount, unmount

_PREFIX, _POINT = ".probe-", "point"
_TIME = 1_000_000_001
_EMPTY = Listing(ROOT, encode_directory(Directory(ROOT, _TIME)), b"")


class _NoOwners:
    """All entries belong to root."""

    def uid(self, name: bytes) -> int:  # noqa: ARG002 (the interface)
        return 0

    def gid(self, name: bytes) -> int:  # noqa: ARG002 (the interface)
        return 0


def check_mountable(folder: Path) -> None:
    """Raise `MountError` if an image in `folder` cannot be mounted.

    Makes an empty image in `folder`, mounts and reads it, and removes both.  The caller holds a
    lock, so that no other run does the same in `folder`.
    """
    with storage_errors(folder):
        for left in folder.glob(f"{_PREFIX}*"):  # by one that was killed
            unmount(left / _POINT)
            rmtree(left)
    with storage_errors(folder), TemporaryDirectory(prefix=_PREFIX, dir=folder) as place:
        image, point = Path(place, "image"), Path(place, _POINT)
        point.mkdir()
        write_image(lambda: [_EMPTY], bytes(20), image, _NoOwners())
        mount(image, point)
        try:
            found = os.stat(point).st_mtime_ns
        finally:
            unmount(point)
    if found != _TIME:
        raise MountError(
            f"an image in {folder} was mounted, and its files are not seen",
            hint="something hides or changes mounts; use another kind of attr tree",
        )
