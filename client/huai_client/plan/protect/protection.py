"""Which paths are the administrator's own: never deleted, replaced or written by huai.

Pure.  A path is protected if a pattern matches it or a directory above it.  Patterns are rsync's,
as after `--exclude`, so `/project/trace/my.host` is one path and `*.local` a name anywhere.
"""

from collections.abc import Iterable, Iterator

from huai_client.diff.candidate import Candidate
from huai_client.filters.rules import Rules
from huai_schema.entries import Directory, Entry, File
from huai_schema.paths import RelPath


class Protection:
    """The patterns of one module."""

    def __init__(self, patterns: Iterable[str]) -> None:
        """`FilterError` for a pattern that is wrong."""
        self._rules = Rules.parse(
            [b"- " + each.encode("utf-8", "surrogateescape") for each in patterns], place="protect"
        )

    def __bool__(self) -> bool:
        """Whether there is any pattern."""
        return bool(self._rules)

    def covers(self, path: RelPath, *, directory: bool) -> bool:
        """Whether what stands at `path`, or should, is protected."""
        return bool(path) and not self._rules.reaches(path, directory=directory)

    def may_cover(self, path: RelPath) -> bool:
        """The same where it is not known whether `path` is a directory."""
        return self.covers(path, directory=False) or self.covers(path, directory=True)

    def covers_candidate(self, candidate: Candidate) -> bool:
        """Whether what is there is protected, or what should be there would be."""
        path = candidate.path
        entries = [each for each in (candidate.have, candidate.wanted) if each is not None]
        if any(self.covers(path, directory=isinstance(each, Directory)) for each in entries):
            return True
        return candidate.special and self.covers(path, directory=False)

    def same_protection(self, old: RelPath, new: RelPath) -> bool:
        """Whether neither of two directories is protected, nor any anchored pattern leads below.

        What is protected below by its name alone has to be looked for in the tree.
        """
        covered = self.covers(old, directory=True) or self.covers(new, directory=True)
        return not covered and self._rules.alike_below(old, new)

    def entries(self, wanted: Iterable[Entry]) -> Iterator[Entry]:
        """Those of a snapshot that are not protected."""
        for entry in wanted:
            if not self.covers(entry.path, directory=isinstance(entry, Directory)):
                yield self.detached(entry)

    def detached(self, entry: Entry) -> Entry:
        """The entry; as a file of its own if what it is a hardlink of is protected."""
        if not isinstance(entry, File) or entry.link is None:
            return entry
        return entry._replace(link=None) if self.covers(entry.link, directory=False) else entry
