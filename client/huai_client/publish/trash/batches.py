"""What batches of the trash are called.

Pure.
"""

import re
import time
from calendar import timegm
from typing import NamedTuple

_NAME = re.compile(rb"([0-9]{1,19})-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z(?:-([0-9]{1,9}))?")


class TrashBatch(NamedTuple):
    """What one run kept."""

    since: int
    """When the run began to, seconds since the epoch."""
    number: int
    """Of those of one second."""
    serial: int
    """Of the commit that was applied then."""

    @property
    def name(self) -> bytes:
        """Of its folder: SERIAL-TIME."""
        when = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self.since)).encode()
        return b"%d-%b" % (self.serial, when) + (b"-%d" % self.number if self.number else b"")


def parse_name(name: bytes) -> TrashBatch | None:
    """The batch that is called so; None: nothing that huai made."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    serial, *when, number = found.groups()
    try:
        since = timegm((*map(int, when), 0, 0, 0))
    except ValueError:
        return None
    batch = TrashBatch(since, int(number or 0), int(serial))
    return batch if batch.name == name else None
