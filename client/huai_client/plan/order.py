"""Finds the stage in which a path is published, and the rule that decides it.

Pure: the engine applies the rules, given as a table, and reads the snapshot.  The first of these
that matches decides:

1. volatile files are pointers;
2. the stage rules of client.toml, then those of the upstream;
3. the rules of the repositories around the path, outermost first (they match no path of an inner
   one);
4. outside of repositories, the generic rules.

A path without a matching rule is payload.  A repository is where a profile rule puts one, and below
it no other is searched for; a rule of client.toml replaces the upstream's at and below its path.
Elsewhere a repository is where the markers of a profile are.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from huai_client.diff.candidate import Remove
from huai_client.diff.files import chosen
from huai_client.plan.operations import PAYLOAD, POINTERS
from huai_client.plan.withhold import Territory
from huai_native import _native
from huai_schema.codec.publish_rules import Pattern, ProfileRule, Rule, StageRule, VolatileRule
from huai_schema.entries import File
from huai_schema.layout.snapshot import Snapshot
from huai_schema.paths import ROOT, RelPath, ancestors, parent, path_order

T = TypeVar("T")


class Matcher(Generic[T]):
    """Finds the first matching pattern of several."""

    def __init__(self, pairs: Iterable[tuple[Pattern, T]]) -> None:
        """`pairs`: patterns, each with the value that `find` returns for it."""
        pairs = list(pairs)
        self._values = [value for _, value in pairs]
        self._engine = _native.PublishPatterns([row(pattern) for pattern, _ in pairs])

    def find(self, path: RelPath, *, symlink: bool) -> T | None:
        """Return the value of the first pattern that matches `path`; None without one."""
        (first,) = self._engine.first([path], symlink=symlink)
        return None if first is None else self._values[first]

    def find_positions(self, files: Sequence[File]) -> list[int]:
        """Return the indices of the `files` that any pattern matches."""
        matches = self._engine.first(files, symlink=False)
        if matches.count(None) == len(matches):
            return []
        return [position for position, first in enumerate(matches) if first is not None]


def row(pattern: Pattern) -> tuple[list[bytes], bool]:
    """Return a pattern in the engine's form."""
    return [name.encode() for name in pattern.components], pattern.symlinks


class Profile(NamedTuple):
    """The layout of one kind of repository."""

    name: str
    tops: tuple[tuple[str, ...], ...]
    """Lists of markers; a directory with all markers of one list is the top of a repository."""
    rules: tuple[StageRule, ...]
    """Rules relative to the top; the common ones come last."""
    signed: tuple[tuple[str, str], ...] = ()
    """Names of files that readers trust by a signature, and the suffix of the signature's name;
    an empty suffix: the signature is in the file."""


Rules = Iterable[Rule]

GENERIC = "generic"
"""The profile of paths outside of repositories."""


class PackageRepository(NamedTuple):
    """A subtree with the layout of a profile."""

    top: RelPath
    profile: str
    found_by: str
    """The markers that were found, or the text of the profile rule."""


class Placement(NamedTuple):
    """The stage of a path, and the reason."""

    stage: int
    """An index into `STAGES`."""
    rule: str
    """The text of the rule that decided; empty if none matches, so the path is payload."""
    repository: PackageRepository | None
    """The repository whose rule decided, else the innermost one around the path."""


class PublishOrder(Territory):
    """The stages of the paths of one snapshot."""

    def __init__(
        self,
        snapshot: Snapshot,
        profiles: Mapping[str, Profile],
        own: Rules,
        upstream: Rules,
        volatile: Iterable[VolatileRule] = (),
    ) -> None:
        """`own` are the rules of client.toml, `upstream` those of the descriptor.

        `volatile` are the rules for volatile files, from any source.
        """
        own, upstream, volatile = list(own), list(upstream), list(volatile)
        self._volatile = Matcher((rule.pattern, rule) for rule in volatile)
        self._profiles = list(profiles.values())
        self._assigned = _assigned(own, upstream, profiles)
        self._rules: list[StageRule | VolatileRule] = []
        changing = self._place(volatile)
        self._stated = self._place(
            each for each in (*own, *upstream) if isinstance(each, StageRule)
        )
        places = {each.name: self._place(each.rules) for each in self._profiles}
        numbers = {each.name: number for number, each in enumerate(self._profiles)}
        self._engine = _native.PublishOrder(
            snapshot.arguments,
            [(row(rule.pattern), _stage(rule)) for rule in self._rules],
            volatile=changing,
            stated=self._stated,
            generic=places[GENERIC],
            profiles=[(_markers(each), places[each.name]) for each in self._profiles],
            assigned={
                path: None if rule.profile == GENERIC else numbers[rule.profile]
                for path, rule in self._assigned.items()
            },
        )

    def _place(self, rules: Iterable[StageRule | VolatileRule]) -> tuple[int, int]:
        """Append `rules` to the others; return their begin and end."""
        begin = len(self._rules)
        self._rules += rules
        return begin, len(self._rules)

    def stages_of(self, items: Sequence[tuple[RelPath, bool]]) -> bytes:
        """Return the stages of files and symlinks, as indices into `STAGES`, one byte each.

        Each item has a path, and True for a symlink.
        """
        return self._engine.stages(items)

    def stage_of(self, path: RelPath, *, symlink: bool = False) -> int:
        """Return the stage of a file or symlink, an index into `STAGES`."""
        return self._engine.placement(path, symlink=symlink)[0]

    def is_volatile(self, path: RelPath) -> bool:
        """Return True if the file at `path` changes without a commit."""
        return self._volatile.find(path, symlink=False) is not None

    def volatile_files(self, files: Sequence[File]) -> Sequence[File]:
        """Return the `files` that change without a commit."""
        return chosen(files, self._volatile.find_positions(files))

    def deletes_at_once(self, item: Remove) -> bool:
        """Return True for a deletion that is never delayed: that of a pointer."""
        return not item.directory and self.stage_of(item.path) == POINTERS

    def repository_of(self, path: RelPath) -> RelPath | None:
        """Return the top of the outermost repository around `path`; None outside of all."""
        inside = self._engine.around(parent(path))
        return self._repository(inside[0]).top if inside else None

    def names_below(self, path: RelPath, *, symlink: bool = False) -> RelPath | None:
        """Return the directory whose paths the index or pointer at `path` may name.

        None for payload.
        """
        stage, rule, repository = self._engine.placement(path, symlink=symlink)
        if stage == PAYLOAD:
            return None
        if rule is not None and self._stated[0] <= rule < self._stated[1]:
            return self.repository_of(path) or ROOT
        is_volatile = rule is not None and rule < self._stated[0]
        if repository is not None and not is_volatile:
            return self._repository(repository).top
        return ROOT if rule is None else _base_of(path, self._rules[rule].pattern)

    def placement_of(self, path: RelPath, *, symlink: bool = False) -> Placement:
        """Return the stage of a file or symlink, and the rule that decides it."""
        stage, rule, repository = self._engine.placement(path, symlink=symlink)
        text = "" if rule is None else self._rules[rule].text
        around = None if repository is None else self._repository(repository)
        return Placement(stage, text, around)

    def repositories(self) -> list[PackageRepository]:
        """Return the repositories found so far, in the order of their paths.

        Those are the ones around each path that may be an index or pointer: none other is looked
        for, which would read the names of the whole tree.
        """
        repositories = map(self._repository, range(self._engine.found()))
        return sorted(repositories, key=lambda each: path_order(each.top))

    def is_directory(self, path: RelPath) -> bool:
        """Return True if the snapshot has a directory at `path`."""
        return self._engine.is_directory(path)

    def has_entry(self, path: RelPath) -> bool:
        """Return True if the snapshot has an entry at `path`."""
        return self._engine.has_entry(path)

    def _repository(self, number: int) -> PackageRepository:
        """Return the repository of this number, and how it was found."""
        path, kind, markers = self._engine.repository(number)
        top, profile = RelPath(path), self._profiles[kind]
        if markers is None:
            return PackageRepository(top, profile.name, self._assigned[top].text)
        return PackageRepository(top, profile.name, ", ".join(profile.tops[markers]))


def _assigned(
    own: Rules, upstream: Rules, profiles: Mapping[str, Profile]
) -> dict[RelPath, ProfileRule]:
    """Return the profile rules by path; one of `own` drops the upstream's at and below its path.

    Rules of unknown profiles are left out.
    """
    mine, theirs = _profile_rules(own, profiles), _profile_rules(upstream, profiles)
    for path in list(theirs):
        if not mine.keys().isdisjoint((path, *ancestors(path))):
            del theirs[path]
    return {**theirs, **mine}


def _profile_rules(rules: Rules, profiles: Mapping[str, Profile]) -> dict[RelPath, ProfileRule]:
    """Return the first profile rule of each path; unknown profiles are left out."""
    by_path: dict[RelPath, ProfileRule] = {}
    for rule in rules:
        if isinstance(rule, ProfileRule) and rule.profile in profiles:
            by_path.setdefault(rule.path, rule)
    return by_path


def _markers(profile: Profile) -> list[list[bytes]]:
    return [[marker.encode() for marker in markers] for markers in profile.tops]


def _stage(rule: StageRule | VolatileRule) -> int:
    return rule.stage if isinstance(rule, StageRule) else POINTERS


def _base_of(path: RelPath, pattern: Pattern) -> RelPath:
    """Return the directory to which `pattern` is relative; `path` matches it.

    That is the one above the components after a leading `**`, else the root.
    """
    first, *rest = pattern.components
    if first != "**" or "**" in rest:
        return ROOT
    return ancestors(path)[len(rest) - 1]
