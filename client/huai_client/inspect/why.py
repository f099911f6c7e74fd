"""The facts about a path of a module: commit, filter, stage, deletion, the tree.

Only composes; changes nothing.
"""

from typing import NamedTuple

from huai_client.config.load import Module
from huai_client.config.mirror import Mirror
from huai_client.diff.active_filter import rules_of
from huai_client.filters import Decision
from huai_client.inspect.commits import Commits
from huai_client.inspect.local_status import LocalStatus, PathStatus, local_status
from huai_client.inspect.next_sync import Preview, preview
from huai_client.inspect.path_log import Event, path_events
from huai_client.metadata.commit import Commit
from huai_client.plan.build import applied_selection, publish_order
from huai_client.plan.order.order import GENERIC, Placement, PublishOrder
from huai_client.plan.protect.protection import Protection
from huai_client.run.options import SyncOptions
from huai_client.state import delayed_record
from huai_client.state.delayed_deletion import DelayedDeletion
from huai_client.verify.summary import Times, times_of
from huai_program.durations import seconds
from huai_schema.codec.publish_rules import volatile_rules
from huai_schema.entries import Directory, Entry, File, Symlink
from huai_schema.paths import RelPath


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
    """The entry of the applied commit, even if the filter excludes it."""
    brought: Event | None
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
    verified: Times | None
    """The times at which `verify` last compared the part with the path, if it did."""
    next_sync: Preview

    @property
    def unknown(self) -> bool:
        """True if the path is in neither the tree, nor a local commit, nor `protect`."""
        newest = self.next_sync.commit.snapshot.entry(self.path)
        nowhere = self.entry is None and newest is None and self.brought is None
        return nowhere and not self.protected and self.local.status is PathStatus.NOTHING


def reasons(path: RelPath, mirror: Mirror, commits: Commits) -> Reasons:
    """Collect the facts about `path`."""
    module, applied = mirror.config, commits.applied
    entry = applied.snapshot.entry(path)
    local = local_status(
        mirror.dest,
        path,
        applied_selection(applied, commits.state).entry(path),
        owners=module.owners,
    )
    directory = isinstance(entry or local.entry, Directory)
    rules = rules_of(mirror, SyncOptions())
    delayed = delayed_record.load(mirror.paths.delayed)
    mine = next((each for each in delayed if each.path == path), None)
    order = publish_order(module, applied)
    placement = _placement(path, entry, order)
    volatile = isinstance(entry, File) and order.is_volatile(path)
    return Reasons(
        path=path,
        applied=applied,
        entry=entry,
        brought=next(path_events(path, commits.line), None),
        filtered=Filtered(
            rules.why(path, directory=directory), rules.protected(path, directory=directory)
        )
        if rules
        else None,
        protected=Protection(module.protected).covers(path, directory=directory),
        placement=placement,
        rule_of=_rule_of(placement, module, applied, volatile=volatile) if placement else "",
        volatile=volatile,
        delayed=mine,
        until=mine.since + seconds(module.delete_after) if mine else 0,
        local=local,
        verified=times_of(mirror.paths.verified, path),
        next_sync=preview(path, mirror, commits),
    )


def _placement(path: RelPath, entry: Entry | None, order: PublishOrder) -> Placement | None:
    if entry is None or isinstance(entry, Directory):
        return None
    return order.placement_of(path, symlink=isinstance(entry, Symlink))


def _rule_of(placement: Placement, module: Module, applied: Commit, *, volatile: bool) -> str:
    if not placement.rule:
        return ""
    if placement.rule in (*module.publish, *volatile_rules(module.volatile or ())):
        return "client.toml"
    if placement.rule in applied.descriptor.publish:
        return "the upstream"
    if volatile:
        return "the list that is always known"
    return f"the profile {placement.repository.profile if placement.repository else GENERIC}"
