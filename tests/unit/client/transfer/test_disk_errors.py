"""Hints for a staging area that cannot be written."""

import errno
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from huai_client.transfer.errors import DiskFullError, LocalWriteError
from huai_client.transfer.fetch import disk_errors


@pytest.mark.parametrize(
    ("code", "kind", "advice"),
    [
        (errno.ENOSPC, DiskFullError, "free some space"),
        (errno.EDQUOT, DiskFullError, "raise the quota"),
        (errno.EMFILE, LocalWriteError, "allow more open files"),
        (errno.EIO, LocalWriteError, "the disk fails"),
        (errno.EINVAL, LocalWriteError, "check the file system"),
    ],
)
def test_the_advice_follows_the_error(code: int, kind: type[LocalWriteError], advice: str) -> None:
    staging: Any = SimpleNamespace(root=Path("/srv/copy"))
    with pytest.raises(kind) as caught, disk_errors(staging):
        raise OSError(code, os.strerror(code))
    assert caught.value.hint.startswith(advice)
