"""Finds the stage in which a path is published, and the rule that decides it.

Pure: a `MarkerLookup` looks into the snapshot.  The first of these that matches decides:

1. volatile files are pointers;
2. the stage rules of client.toml, then those of the upstream;
3. the rules of the repositories around the path, outermost first (they match no path of an inner
   one);
4. outside of repositories, the generic rules.

A path that nothing matches is payload.  A repository is where a profile rule puts one, and below
that place none is looked for; a rule of client.toml replaces the upstream's at and below its path.
Elsewhere a repository is where the markers of a profile are.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from huai_client.plan.operations import PAYLOAD, POINTERS, Remove
from huai_client.plan.order.patterns import Matcher, Named, below
from huai_client.profiles.profile import Profile
from huai_schema.codec.publish_rules import Pattern, ProfileRule, Rule, StageRule, VolatileRule
from huai_schema.paths import ROOT, RelPath, ancestors, parent, path_order

Rules = Iterable[Rule]

GENERIC = "generic"
"""The profile of paths outside of repositories."""


class MarkerLookup(Protocol):
    """Finds the markers of profiles in a snapshot; `lookup.Lookup` implements it."""

    def has(self, folder: RelPath, marker: str) -> bool:
        """Whether `marker` fits in `folder`."""


class PackageRepository(NamedTuple):
    """A subtree that is laid out as a profile says."""

    top: RelPath
    profile: str
    found_by: str
    """The markers that were found, or the text of the profile rule."""


class Placement(NamedTuple):
    """The stage of a path, and why."""

    stage: int
    """An index into `STAGES`."""
    rule: str
    """The text of the rule that decided; empty: none matches, so the path is payload."""
    repository: PackageRepository | None
    """The repository whose rule decided, else the innermost one around the path."""


class PublishOrder:
    """The stages of the paths of one snapshot."""

    def __init__(
        self,
        markers: MarkerLookup,
        profiles: Mapping[str, Profile],
        own: Rules,
        upstream: Rules,
        volatile: Iterable[VolatileRule] = (),
    ) -> None:
        """`own` are the rules of client.toml, `upstream` those of the descriptor.

        `volatile` are the rules for volatile files, whoever made them.
        """
        own, upstream = list(own), list(upstream)
        self._volatile = Matcher((rule.pattern, rule) for rule in volatile)
        self._markers = markers
        self._profiles = profiles
        self._explicit = _matcher(each for each in (*own, *upstream) if isinstance(each, StageRule))
        self._matchers = {name: _matcher(each.rules) for name, each in profiles.items()}
        mine = self._profile_rules(own)
        theirs = self._profile_rules(upstream)
        for path in list(theirs):
            if not mine.keys().isdisjoint((path, *ancestors(path))):
                del theirs[path]
        self._assigned = {**theirs, **mine}
        self._known: dict[RelPath, tuple[PackageRepository, ...]] = {}

    def _profile_rules(self, rules: Rules) -> dict[RelPath, ProfileRule]:
        found: dict[RelPath, ProfileRule] = {}
        for rule in rules:
            if isinstance(rule, ProfileRule) and rule.profile in self._profiles:
                found.setdefault(rule.path, rule)
        return found

    def stage_of(self, path: RelPath, *, symlink: bool = False) -> int:
        """The stage, an index into `STAGES`, in which a file or symlink is published."""
        return self.placement_of(path, symlink=symlink).stage

    def is_volatile(self, path: RelPath) -> bool:
        """Whether the file at `path` changes without a commit."""
        return self._volatile.find(Named(path, symlink=False)) is not None

    def deletes_at_once(self, item: Remove) -> bool:
        """Whether a deletion is never delayed: that of a pointer."""
        return not item.directory and self.stage_of(item.path) == POINTERS

    def repository_of(self, path: RelPath) -> RelPath | None:
        """The top of the outermost repository that `path` is in; None: it is in none."""
        inside = self._around(parent(path))
        return inside[0].top if inside else None

    def names_below(self, path: RelPath, *, symlink: bool = False) -> RelPath | None:
        """The directory whose paths the index or pointer `path` may name; None: it is payload."""
        placement = self.placement_of(path, symlink=symlink)
        if placement.stage == PAYLOAD:
            return None
        volatile = None if symlink else self._volatile.find(Named(path, symlink=False))
        if volatile is not None:
            return _seen_from(path, volatile.pattern)
        explicit = self._explicit.find(Named(path, symlink))
        if explicit is not None:
            return self.repository_of(path) or ROOT
        if placement.repository is not None:
            return placement.repository.top
        rule = self._matchers[GENERIC].find(Named(path, symlink))
        return _seen_from(path, rule.pattern) if rule else ROOT

    def placement_of(self, path: RelPath, *, symlink: bool = False) -> Placement:
        """The stage in which a file or symlink is published, and the rule that decides it."""
        inside = self._around(parent(path))
        volatile = None if symlink else self._volatile.find(Named(path, symlink))
        if volatile is not None:
            return Placement(POINTERS, volatile.text, inside[-1] if inside else None)
        rule = self._explicit.find(Named(path, symlink))
        if rule is not None:
            return Placement(rule.stage, rule.text, inside[-1] if inside else None)
        for repository in inside:
            found = self._matchers[repository.profile]
            rule = found.find(Named(below(repository.top, path), symlink))
            if rule is not None:
                return Placement(rule.stage, rule.text, repository)
        if inside:
            return Placement(PAYLOAD, "", inside[-1])
        rule = self._matchers[GENERIC].find(Named(path, symlink))
        return Placement(rule.stage, rule.text, None) if rule else Placement(PAYLOAD, "", None)

    @property
    def repositories(self) -> list[PackageRepository]:
        """The repositories found so far, in the order of their paths."""
        met = {each for around in self._known.values() for each in around}
        return sorted(met, key=lambda each: path_order(each.top))

    def _around(self, folder: RelPath) -> tuple[PackageRepository, ...]:
        """The repositories that `folder` is in, outermost first."""
        if folder in self._known:
            return self._known[folder]
        missing, above = [], folder
        while above not in self._known:
            missing.append(above)
            if not above:
                break
            above = RelPath(parent(above))
        for path in reversed(missing):
            outer = self._known[parent(path)] if path else ()
            self._known[path] = self._entered(path, outer)
        return self._known[folder]

    def _entered(
        self, path: RelPath, outer: tuple[PackageRepository, ...]
    ) -> tuple[PackageRepository, ...]:
        """The repositories around the content of `path`; `outer` are those around `path`."""
        rule = self._assigned.get(path)
        if rule is not None:
            here = PackageRepository(path, rule.profile, rule.text)
            return () if rule.profile == GENERIC else (here,)
        if self._assigned and any(above in self._assigned for above in ancestors(path)):
            return outer
        top = self._detect(path)
        return outer if top is None else (*outer, top)

    def _detect(self, path: RelPath) -> PackageRepository | None:
        for profile in self._profiles.values():
            for markers in profile.tops:
                if all(self._markers.has(path, marker) for marker in markers):
                    return PackageRepository(path, profile.name, ", ".join(markers))
        return None


def _seen_from(path: RelPath, pattern: Pattern) -> RelPath:
    """The directory above the components of `pattern` that follow a leading `**`, else the root.

    `path` matches `pattern`.
    """
    first, *rest = pattern.components
    if first != "**" or "**" in rest:
        return ROOT
    return ancestors(path)[len(rest) - 1]


def _matcher(rules: Iterable[StageRule]) -> Matcher[StageRule]:
    return Matcher((rule.pattern, rule) for rule in rules)
