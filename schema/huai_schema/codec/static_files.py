"""The head of the static transport and its lists (FORMAT.md, "Static transport").

Pure.  Both are of one form: commits, and the packs that lead from one to another.  Nothing in them
is believed: a pack is what its digest says, and what comes of it is judged as any other commit.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple, NoReturn

from huai_schema.codec.descriptor import CONTENT_URLS
from huai_schema.errors import FormatError
from huai_schema.limits import DIGEST_BYTES

FOLDER = "static"
"""Below the address of a repository."""
HEAD = "head"
STATIC_BYTES = 262_144
"""A head, or a list."""
MAGIC = b"huai-static\t"
"""The first bytes of a head or a list of any version."""
_FIRST = f"{MAGIC.decode()}1"
_NUMBER = "0|[1-9][0-9]{0,17}"
_FILE = f"({_NUMBER})\t([0-9a-f]{{{2 * DIGEST_BYTES}}})"
_COMMIT = re.compile(f"commit\t([0-9a-f]{{40}})\t({_NUMBER})")
_STEP = re.compile(f"step\t({_NUMBER})\t({_NUMBER})\t{_FILE}")
_LIST = re.compile(f"list\t({_NUMBER})\t({_NUMBER})\t{_FILE}")
_OTHER = re.compile("[a-z][a-z-]*(?:\t[^\t]*)*")
_CONTENT = "content"
_KNOWN = ("commit", "step", "list")
NOTHING = 0
"""The serial of whoever has nothing: no commit has it."""


class StaticFile(NamedTuple):
    """A file that never changes."""

    size: int
    digest: bytes

    @property
    def pack(self) -> str:
        """Its name below `FOLDER`, if it is a pack."""
        return f"packs/{self.digest.hex()}.pack"

    @property
    def list(self) -> str:
        """Its name below `FOLDER`, if it is a list."""
        return f"lists/{self.digest.hex()}"


class Step(NamedTuple):
    """A pack that leads from one commit to a later one; each is named by its serial."""

    old: int
    """`NOTHING`: the pack has all."""
    new: int
    file: StaticFile


class ListOf(NamedTuple):
    """A list: from which commits on its steps lead."""

    first: int
    last: int
    file: StaticFile


class Static(NamedTuple):
    """What a head or a list says."""

    commits: dict[int, str]
    """Serials and hex ids, the newest first."""
    steps: tuple[Step, ...]
    lists: tuple[ListOf, ...] = ()
    content_urls: tuple[str, ...] = ()
    """Where a relay has the content; empty: where the commit says."""

    @property
    def newest(self) -> int:
        """The serial of the newest commit."""
        return next(iter(self.commits))

    def encode(self) -> bytes:
        """The text; what has more than `STATIC_BYTES` is a `ValueError`."""
        lines = [
            _FIRST,
            *(f"commit\t{self.commits[serial]}\t{serial}" for serial in self.commits),
            *(f"step\t{old}\t{new}\t{_shown(file)}" for old, new, file in self.steps),
            *(f"list\t{first}\t{last}\t{_shown(file)}" for first, last, file in self.lists),
            *(f"{_CONTENT}\t{url}" for url in self.content_urls),
        ]
        text = "".join(f"{line}\n" for line in lines).encode("ascii")
        if len(text) > STATIC_BYTES:
            raise ValueError(f"{len(text)} bytes of static files are too many")
        return text

    @classmethod
    def decode(cls, data: bytes, place: str) -> "Static":
        """Read the text; `FormatError` at `place`."""
        if len(data) > STATIC_BYTES:
            raise FormatError(f"more than {STATIC_BYTES} bytes", place)
        try:
            lines = data.decode("utf-8").split("\n")
        except UnicodeDecodeError:
            raise FormatError("this is not text", place) from None
        if lines[0] != _FIRST:
            raise FormatError("this is not a list of static files, version 1", place)
        if lines.pop():
            raise FormatError("the last line has no end", place)
        found = cls({}, (), ())
        steps: list[Step] = []
        lists: list[ListOf] = []
        for number, line in enumerate(lines[1:], 2):
            _read(line, f"{place}, line {number}", found.commits, steps, lists)
        if not found.commits:
            raise FormatError("no commit", place)
        for step in steps:
            if {step.old, step.new} - found.commits.keys() - {NOTHING}:
                raise FormatError("a step of a commit that is not named", place)
        return cls(found.commits, tuple(steps), tuple(lists), _content_urls(lines))


def _read(
    line: str, place: str, commits: dict[int, str], steps: list[Step], lists: list[ListOf]
) -> None:
    if found := _COMMIT.fullmatch(line):
        serial = int(found[2])
        if serial == NOTHING or (commits and serial >= next(reversed(commits))):
            _refuse("commits are not in order", place)
        commits[serial] = found[1]
    elif found := _STEP.fullmatch(line):
        step = Step(int(found[1]), int(found[2]), _file(found, 3))
        if step.old >= step.new:
            _refuse("a step back", place)
        steps.append(step)
    elif found := _LIST.fullmatch(line):
        lists.append(ListOf(int(found[1]), int(found[2]), _file(found, 3)))
    elif not _OTHER.fullmatch(line) or line.partition("\t")[0] in _KNOWN:
        _refuse("a line that is none", place)


def _content_urls(lines: Iterable[str]) -> tuple[str, ...]:
    """What is named beyond the limit, or is spelt oddly, is passed over: it is a hint."""
    named = (line.split("\t") for line in lines)
    urls = [each[1] for each in named if each[0] == _CONTENT and len(each) == 2]
    return tuple(url for url in urls if url.isprintable() and " " not in url)[:CONTENT_URLS]


def cheapest(
    steps: Iterable[Step], have: Iterable[int], want: int, *, request: int = 0
) -> list[Step] | None:
    """The steps with the fewest bytes from any of the serials `have` to `want`, in order.

    A step costs `request` bytes beside its own.  None: there is no way.
    """
    cost = dict.fromkeys(have, 0)
    came: dict[int, Step] = {}
    # No step leads back, so those to a commit are all known before those from it.
    for step in sorted(steps, key=lambda step: (step.new, step.old)):
        if step.old not in cost:
            continue
        total = cost[step.old] + step.file.size + request
        if total < cost.get(step.new, total + 1):
            cost[step.new], came[step.new] = total, step
    if want not in cost:
        return None
    way: list[Step] = []
    at = want
    while at in came:
        way.append(came[at])
        at = came[at].old
    return way[::-1]


def _file(found: re.Match[str], group: int) -> StaticFile:
    return StaticFile(int(found[group]), bytes.fromhex(found[group + 1]))


def _shown(file: StaticFile) -> str:
    return f"{file.size}\t{file.digest.hex()}"


def _refuse(reason: str, place: str) -> NoReturn:
    raise FormatError(reason, place)
