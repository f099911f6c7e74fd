"""The head of the static transport and its lists (FORMAT.md, "Static transport").

Pure.  Both have one form: commits, and the packs that lead from one to another.  Nothing in them is
trusted: a pack is checked by its digest, and its commits are checked as any others.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from huai_schema.codec.descriptor import CONTENT_URLS
from huai_schema.errors import FormatError
from huai_schema.limits import DIGEST_BYTES

FOLDER = "static"
"""The folder below the URL of a repository."""
HEAD = "head"
STATIC_BYTES = 262_144
"""The maximal size of a head or a list."""
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
"""The serial of a client without any commit; no commit has it."""


class StaticFile(NamedTuple):
    """A file that never changes."""

    size: int
    digest: bytes
    """The BLAKE3-256 of its content."""

    @property
    def pack_name(self) -> str:
        """The name of the pack below `FOLDER`."""
        return f"packs/{self.digest.hex()}.pack"

    @property
    def list_name(self) -> str:
        """The name of the list below `FOLDER`."""
        return f"lists/{self.digest.hex()}"


class Step(NamedTuple):
    """A pack with what a commit has beyond an older one; both are given by their serials."""

    old: int
    """`NOTHING` if the pack is complete."""
    new: int
    file: StaticFile


class ListOf(NamedTuple):
    """A reference to a list, with the serials of the first and last commit to step from."""

    first: int
    """`NOTHING` for the list with the rest of a head."""
    last: int
    file: StaticFile


class Static(NamedTuple):
    """The content of a head or a list."""

    commits: dict[int, str]
    """Hex ids by serial, the newest first."""
    steps: tuple[Step, ...]
    lists: tuple[ListOf, ...] = ()
    content_urls: tuple[str, ...] = ()
    """The content URLs of a relay; empty: those of the commit."""

    @property
    def newest(self) -> int:
        """The serial of the newest commit."""
        return next(iter(self.commits))

    def encode(self) -> bytes:
        """Return the text; `ValueError` if it has more than `STATIC_BYTES`."""
        lines = [
            _FIRST,
            *(f"commit\t{self.commits[serial]}\t{serial}" for serial in self.commits),
            *(f"step\t{old}\t{new}\t{_file_fields(file)}" for old, new, file in self.steps),
            *(f"list\t{first}\t{last}\t{_file_fields(file)}" for first, last, file in self.lists),
            *(f"{_CONTENT}\t{url}" for url in self.content_urls),
        ]
        text = "".join(f"{line}\n" for line in lines).encode("ascii")
        if len(text) > STATIC_BYTES:
            raise ValueError(f"{len(text)} bytes of static files are too many")
        return text

    @classmethod
    def decode(cls, data: bytes, place: str) -> "Static":
        """Parse the text, without lines of unknown kinds; a `FormatError` names `place`.

        Raises it if the text is malformed or too long, has no commit, or a step of an unlisted
        commit.
        """
        if len(data) > STATIC_BYTES:
            raise FormatError(f"more than {STATIC_BYTES} bytes", place)
        try:
            lines = data.decode("utf-8").split("\n")
        except UnicodeDecodeError:
            raise FormatError("is not UTF-8", place) from None
        if lines[0] != _FIRST:
            raise FormatError("is not a list of static files, version 1", place)
        if lines.pop():
            raise FormatError("the newline of the last line is missing", place)
        head = cls({}, (), ())
        steps: list[Step] = []
        lists: list[ListOf] = []
        for number, line in enumerate(lines[1:], 2):
            _read_line(line, f"{place}, line {number}", head.commits, steps, lists)
        if not head.commits:
            raise FormatError("a commit is missing", place)
        for step in steps:
            if {step.old, step.new} - head.commits.keys() - {NOTHING}:
                raise FormatError("a step has a serial without a commit", place)
        return cls(head.commits, tuple(steps), tuple(lists), _content_urls(lines))


def _read_line(
    line: str, place: str, commits: dict[int, str], steps: list[Step], lists: list[ListOf]
) -> None:
    """Parse a line, and add it to `commits`, `steps` or `lists`; skip a line of another kind.

    Raises `FormatError` if it is malformed, or a commit is not older than the one before it.
    """
    if match := _COMMIT.fullmatch(line):
        serial = int(match[2])
        if serial == NOTHING or (commits and serial >= next(reversed(commits))):
            raise FormatError("commits are not in order", place)
        commits[serial] = match[1]
    elif match := _STEP.fullmatch(line):
        step = Step(int(match[1]), int(match[2]), _static_file(match, 3))
        if step.old >= step.new:
            raise FormatError("the step does not lead to a later commit", place)
        steps.append(step)
    elif match := _LIST.fullmatch(line):
        lists.append(ListOf(int(match[1]), int(match[2]), _static_file(match, 3)))
    elif not _OTHER.fullmatch(line) or line.partition("\t")[0] in _KNOWN:
        raise FormatError("the line is malformed", place)


def _content_urls(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the URLs of the lines `content`, at most `CONTENT_URLS`.

    They are hints, so malformed ones are skipped.
    """
    fields = (line.split("\t") for line in lines)
    urls = [each[1] for each in fields if each[0] == _CONTENT and len(each) == 2]
    return tuple(url for url in urls if url.isprintable() and " " not in url)[:CONTENT_URLS]


def cheapest(
    steps: Iterable[Step], have: Iterable[int], want: int, *, request: int = 0
) -> list[Step] | None:
    """Return the steps with the fewest bytes from any of the serials `have` to `want`, in order.

    A step costs `request` bytes besides its own.  None if no steps lead to `want`; an empty list if
    `want` is in `have`.
    """
    cost = dict.fromkeys(have, 0)
    last_steps: dict[int, Step] = {}
    # No step leads back, so those to a commit are all known before those from it.
    for step in sorted(steps, key=lambda step: (step.new, step.old)):
        if step.old not in cost:
            continue
        total = cost[step.old] + step.file.size + request
        if total < cost.get(step.new, total + 1):
            cost[step.new], last_steps[step.new] = total, step
    if want not in cost:
        return None
    path: list[Step] = []
    at = want
    while at in last_steps:
        path.append(last_steps[at])
        at = last_steps[at].old
    return path[::-1]


def _static_file(match: re.Match[str], group: int) -> StaticFile:
    """Return the file with the size in `group` and the digest in the next group."""
    return StaticFile(int(match[group]), bytes.fromhex(match[group + 1]))


def _file_fields(file: StaticFile) -> str:
    return f"{file.size}\t{file.digest.hex()}"
