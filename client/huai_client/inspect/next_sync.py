"""A preview of the next sync of one path, without a newer commit of the upstream.

Calls the planner, so it costs as much as a plan; fetches nothing, and changes nothing.
"""

from collections.abc import Iterator
from typing import NamedTuple

from huai_client.config.mirror import Mirror
from huai_client.diff.active_filter import has_same_settings
from huai_client.inspect.commits import Commits
from huai_client.inspect.plan_lines import delayed_lines, plan_lines
from huai_client.metadata.commit import Commit
from huai_client.plan.build import PlanBuilder
from huai_client.plan.operations import Plan
from huai_client.plan.prepared import PreparedPlan
from huai_client.run.options import SyncOptions
from huai_client.state.state import HELD
from huai_client.tree import View
from huai_program.durations import seconds
from huai_schema.errors import HuaiError
from huai_schema.paths import RelPath, ancestors, show


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


def preview(path: RelPath, mirror: Mirror, commits: Commits) -> Preview:
    """Make a plan and search it for `path`; a failure becomes a `refusal`."""
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


def _after(path: RelPath, plan: Plan) -> Iterator[RelPath]:
    """Yield the path after the plan has moved a directory above it."""
    for move in plan.moves:
        if move.old in ancestors(path):
            yield RelPath(move.new + path[len(move.old) :])


def _of_path(path: RelPath, prepared: PreparedPlan, patience: int) -> Preview:
    below = 0
    inside = path + b"/"
    around = {path, *ancestors(path)}
    places = {path, *_after(path, prepared.plan)}
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
