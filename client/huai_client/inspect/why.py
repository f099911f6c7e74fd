"""The facts about a path of a module: commit, filter, stage, deletion, the tree, the next sync.

Only composes; reads attributes and no content, and changes nothing.
"""

from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from huai_client.config.load import Module
from huai_client.config.mirror import Mirror
from huai_client.diff.active_filter import has_same_settings, rules_of
from huai_client.diff.table import compare_path
from huai_client.filters import Decision
from huai_client.inspect.commits import LocalCommits
from huai_client.inspect.comparison import PathEvent, path_events
from huai_client.inspect.plan_totals import delayed_lines, plan_lines
from huai_client.metadata.commit import Commit
from huai_client.plan.build import PlanBuilder, applied_selection, publish_order
from huai_client.plan.order import GENERIC, Placement
from huai_client.plan.prepared import PreparedPlan
from huai_client.plan.protect import Protection
from huai_client.run.options import SyncOptions
from huai_client.state import delayed_record
from huai_client.state.delayed_deletion import DelayedDeletion
from huai_client.state.state import HELD
from huai_client.tree import PathError, View
from huai_client.verify.summary import PartTimes, times_of
from huai_program.durations import seconds
from huai_schema.codec.publish_rules import volatile_rules
from huai_schema.entries import Directory, Entry, File, Symlink
from huai_schema.errors import HuaiError
from huai_schema.paths import RelPath, after_moves, ancestors, parent, show


class Preview(NamedTuple):
    """The effects of the next sync on one path."""

    commit: Commit
    """The commit that the tree would be brought to."""
    operations: tuple[tuple[str, str], ...] = ()
    """The operations on the path or on a directory above it, each with a detail."""
    below: int = 0
    """The number of operations below the path."""
    refusal: str = ""
    """The reason why the sync would do nothing at all, or empty."""
    compares_tree: bool = False
    """True if the sync would compare the whole tree first, which a preview does not."""


def preview(path: RelPath, mirror: Mirror, commits: LocalCommits) -> Preview:
    """Predict what the next sync does to `path`, by its plan; a failure becomes a `refusal`.

    Only the local metadata are read: the upstream may have a newer commit.
    """
    newest = commits.newest
    if commits.state.held:
        return Preview(newest, refusal=HELD)
    builder = PlanBuilder(mirror, SyncOptions(), commits.repository)
    if builder.walks(commits.state):
        return Preview(newest, compares_tree=True)
    same = newest.id == commits.applied.id and has_same_settings(mirror, commits.state)
    if same and not commits.state.attempted:
        return Preview(newest)
    try:
        with View(mirror.dest, owners=mirror.config.owners) as view:
            prepared = builder.update(view, newest, commits.state)
    except HuaiError as error:
        return Preview(newest, refusal=error.message)
    return _of_path(path, prepared, seconds(mirror.config.delete_after))


def _of_path(path: RelPath, prepared: PreparedPlan, patience: int) -> Preview:
    """Return the operations of a plan on `path` or above it, and the number of those below it."""
    below = 0
    inside = path + b"/"
    around = {path, *ancestors(path)}
    moves = {move.old: move.new for move in prepared.plan.moves}
    places = {path, after_moves(path, moves)}
    concerned = [
        ("move", f"{show(move.old)} to {show(move.new)}")
        for move in prepared.plan.moves
        if move.old in around
    ]
    for operation, changed, detail, _ in plan_lines(prepared):
        if changed in places or (operation == "move" and changed in around):
            concerned.append((operation, detail))
        elif changed.startswith(inside):
            below += 1
    for delayed, when in delayed_lines(prepared, patience):
        if delayed == path:
            concerned.append(("delayed", when))
        elif delayed.startswith(inside):
            below += 1
    return Preview(prepared.commit, tuple(concerned), below)


class PathStatus(StrEnum):
    """The status of a path in the tree."""

    AS_APPLIED = "as applied"
    DIFFERS = "differs"
    MISSING = "missing"
    EXTRANEOUS = "extraneous"
    """In the tree, and not in the applied commit."""
    NOTHING = "nothing"
    """In neither of them."""
    UNREADABLE = "unreadable"


class LocalStatus(NamedTuple):
    """The status of one path, with details."""

    status: PathStatus
    attributes: tuple[str, ...] = ()
    """The names of the attributes for `DIFFERS`, sorted."""
    entry: Entry | None = None
    """The local entry; None also for a device, socket or fifo."""
    reason: str = ""
    """The reason for `UNREADABLE`."""


def local_status(
    dest: Path, path: RelPath, expected: Entry | None, *, owners: bool = True
) -> LocalStatus:
    """Compare the local entry at `path` with `expected`; a failure becomes `UNREADABLE`.

    Without `owners`, owner and group are not compared.
    """
    try:
        with View(dest, owners=owners) as view:
            return _compare(view, path, expected)
    except PathError as error:
        return LocalStatus(PathStatus.UNREADABLE, reason=error.reason)
    except HuaiError as error:
        return LocalStatus(PathStatus.UNREADABLE, reason=error.message)


def _compare(view: View, path: RelPath, expected: Entry | None) -> LocalStatus:
    """Compare a path on disk with the applied entry."""
    candidate = compare_path(view, path, expected)
    if not candidate.present:
        return LocalStatus(PathStatus.NOTHING if expected is None else PathStatus.MISSING)
    if expected is None:
        return LocalStatus(PathStatus.EXTRANEOUS, entry=candidate.have)
    status = PathStatus.DIFFERS if candidate.differing else PathStatus.AS_APPLIED
    return LocalStatus(status, tuple(sorted(candidate.differing)), candidate.have)


class Filtered(NamedTuple):
    """The filter's decision about the path."""

    decision: Decision | None
    """The rule that decided; None if no rule matches."""
    protected: bool
    """True if it stays when the upstream does not have it."""

    @property
    def let_through(self) -> bool:
        """True if the path is mirrored."""
        return self.decision is None or self.decision.rule.include


class Reasons(NamedTuple):
    """The facts about one path."""

    path: RelPath
    applied: Commit
    entry: Entry | None
    """The entry of the applied commit, even if the filter excludes it; None if `unfetched`."""
    unfetched: bool
    """True if the filter excludes the path's directory, and its metadata were not fetched."""
    brought: PathEvent | None
    """The last change of it in the commits of the repository."""
    filtered: Filtered | None
    """The decision of the configured filter, if any."""
    protected: bool
    """True if `protect` covers it."""
    placement: Placement | None
    """The stage of a file or symlink; None for a directory."""
    rule_of: str
    """The origin of the publish rule: `client.toml`, `the upstream`, a profile or huai's list of
    volatile files, or empty."""
    volatile: bool
    """True for a file that changes without a commit."""
    delayed: DelayedDeletion | None
    """The delayed deletion of the path, if any."""
    until: int
    """The time of that deletion, seconds since the epoch."""
    local: LocalStatus
    verified: PartTimes | None
    """The times at which `verify` last compared the part with the path, if it did."""
    next_sync: Preview

    @property
    def unknown(self) -> bool:
        """True if the path is in neither the tree, nor a local commit, nor `protect`."""
        newest = self.next_sync.commit.snapshot.entry(self.path)
        nowhere = self.entry is None and newest is None and self.brought is None
        return nowhere and not self.protected and self.local.status is PathStatus.NOTHING


def reasons(path: RelPath, mirror: Mirror, commits: LocalCommits) -> Reasons:
    """Collect the facts about `path`, from the tree and local records, and plan the next sync.

    Raises `StateError`, `DamagedRepositoryError`, `FilterError` or `ConfigError` if they cannot be
    read.
    """
    module, applied = mirror.config, commits.applied
    entry, selection = applied.snapshot.entry(path), applied_selection(applied, commits.state)
    unfetched = False
    if applied.id in commits.repository.sparse:
        directory = path if isinstance(entry, Directory) else parent(path)
        unfetched = not selection.rules.reaches(directory, directory=True)
    if unfetched:
        entry = None
    local = local_status(mirror.dest, path, selection.entry(path), owners=module.owners)
    is_directory = isinstance(entry or local.entry, Directory)
    rules = rules_of(mirror, SyncOptions())
    delayed = delayed_record.load(mirror.paths.delayed)
    mine = next((each for each in delayed if each.path == path), None)
    order = publish_order(module, applied)
    placement = None
    if entry is not None and not isinstance(entry, Directory):
        placement = order.placement_of(path, symlink=isinstance(entry, Symlink))
    volatile = isinstance(entry, File) and order.is_volatile(path)
    return Reasons(
        path=path,
        applied=applied,
        entry=entry,
        unfetched=unfetched,
        brought=None if unfetched else next(path_events(path, commits.line), None),
        filtered=Filtered(
            rules.why(path, directory=is_directory),
            rules.protects(path, directory=is_directory),
        )
        if rules
        else None,
        protected=Protection(module.protected).covers(path, directory=is_directory),
        placement=placement,
        rule_of=_rule_of(placement, module, applied, volatile=volatile) if placement else "",
        volatile=volatile,
        delayed=mine,
        until=mine.since + seconds(module.delete_after) if mine else 0,
        local=local,
        verified=times_of(mirror.paths.verified, path),
        next_sync=preview(path, mirror, commits),
    )


def _rule_of(placement: Placement, module: Module, applied: Commit, *, volatile: bool) -> str:
    """Return where the publish rule of a path comes from, or an empty text."""
    if not placement.rule:
        return ""
    if placement.rule in (*module.publish, *volatile_rules(module.volatile or ())):
        return "client.toml"
    if placement.rule in applied.descriptor.publish:
        return "the upstream"
    if volatile:
        return "the list that is always known"
    return f"the profile {placement.repository.profile if placement.repository else GENERIC}"
