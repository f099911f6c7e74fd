"""What no head names any more stays for a while: a client may be fetching it, or a cache naming it.

`static/unused` says since when.  Now and then all that is there is compared with what the head and
its lists name; so what a killed run left goes, too.
"""

from huai_schema.codec.static_files import FOLDER, STATIC_BYTES, Static
from huai_server.static.target import Target

GRACE = 86_400
"""Seconds that a file stays."""
_EVERY = 3600
"""Seconds between two looks."""
_RECORD = f"{FOLDER}/unused"
_BYTES = 1 << 22
_PLACES = (f"{FOLDER}/packs", f"{FOLDER}/lists")


def remove_unused(target: Target, head: Static, now: float) -> int:
    """Remove what was unused long enough; how many files.  `now` in seconds since the epoch."""
    now = int(now)  # as it is written down: a look is never later than the next one
    looked, since = _decode(target.read(_RECORD, _BYTES) or b"")
    if looked <= now < looked + _EVERY:
        return 0
    wanted = _named(target, head)
    there = [name for place in _PLACES for name in target.names(place)]
    unused = {name: min(since.get(name, now), now) for name in there if name not in wanted}
    over = [name for name, time in unused.items() if time + GRACE <= now]
    for name in over:
        target.remove(name)
        del unused[name]
    lines = [f"{now}\n", *(f"{time} {name}\n" for name, time in sorted(unused.items()))]
    target.replace(_RECORD, "".join(lines).encode())
    return len(over)


def _named(target: Target, head: Static) -> set[str]:
    """All files that the head and its lists name."""
    found: set[str] = set()
    left = [head]
    while left:
        said = left.pop()
        found.update(f"{FOLDER}/{step.file.pack}" for step in said.steps)
        for each in said.lists:
            name = f"{FOLDER}/{each.file.list}"
            text = None if name in found else target.read(name, STATIC_BYTES)
            found.add(name)
            if text is not None:
                left.append(Static.decode(text, name))
    return found


def _decode(text: bytes) -> tuple[int, dict[str, int]]:
    """When it was looked last, and what was unused since when; of a damaged record what can be."""
    first, *lines = text.decode("utf-8", "replace").split("\n")
    found = {}
    for line in lines:
        time, _, name = line.partition(" ")
        if time.isdecimal():
            found[name] = int(time)
    return int(first) if first.isdecimal() else 0, found
