"""Removal of files that no head names: they stay a while for running fetches and cached heads.

`static/unused` records since when.  Now and then all files are compared with those that the head
and its lists name, which also finds the remains of a killed run.
"""

from huai_schema.codec.static_files import FOLDER, STATIC_BYTES, Static
from huai_schema.errors import FormatError
from huai_server.static.target import Target

GRACE = 86_400
"""Seconds that an unused file stays."""
_EVERY = 3600
"""Seconds between two comparisons."""
_RECORD = f"{FOLDER}/unused"
_BYTES = 1 << 22
_PLACES = (f"{FOLDER}/packs", f"{FOLDER}/lists")


def is_file_lost(target: Target, head: Static) -> bool:
    """Return True if the target lacks a file that `head` or its lists name.

    False while a list is malformed.
    """
    try:
        return not _named_files(target, head) <= set(_stored_files(target))
    except FormatError:
        return False


def remove_unused(target: Target, head: Static, now: float) -> int:
    """Delete files that `head` and its lists have not named for `GRACE` seconds; return how many.

    Does so at most once an hour, else returns 0.  Replaces the record.  `now` is in seconds since
    the epoch.  Deletes nothing while a list is malformed, as what that names is unknown.
    """
    now = int(now)  # as recorded: a comparison is never later than the next one
    compared, since = _decode(target.read(_RECORD, _BYTES) or b"")
    if compared <= now < compared + _EVERY:
        return 0
    try:
        named_files = _named_files(target, head)
    except FormatError:
        return 0
    stored = (name for name in _stored_files(target) if name not in named_files)
    unused = {name: min(since.get(name, now), now) for name in stored}
    expired = [name for name, time in unused.items() if time + GRACE <= now]
    for name in expired:
        target.remove(name)
        del unused[name]
    lines = [f"{now}\n", *(f"{time} {name}\n" for name, time in sorted(unused.items()))]
    target.replace(_RECORD, "".join(lines).encode())
    return len(expired)


def _stored_files(target: Target) -> list[str]:
    return [name for place in _PLACES for name in target.names(place)]


def _named_files(target: Target, head: Static) -> set[str]:
    """Return the files that a head and its lists name; `FormatError` if a list is malformed."""
    names: set[str] = set()
    left = [head]
    while left:
        listing = left.pop()
        names.update(f"{FOLDER}/{step.file.pack_name}" for step in listing.steps)
        for entry in listing.lists:
            name = f"{FOLDER}/{entry.file.list_name}"
            text = None if name in names else target.read(name, STATIC_BYTES)
            names.add(name)
            if text is not None:
                left.append(Static.decode(text, name))
    return names


def _decode(text: bytes) -> tuple[int, dict[str, int]]:
    """Parse the record to the time of the last comparison (0 without one), and times by file name.

    Each is the time, in seconds since the epoch, since which the file is unused.
    """
    first, *lines = text.decode("utf-8", "replace").split("\n")
    since = {}
    for line in lines:
        time, _, name = line.partition(" ")
        if time.isdecimal():
            since[name] = int(time)
    return int(first) if first.isdecimal() else 0, since
