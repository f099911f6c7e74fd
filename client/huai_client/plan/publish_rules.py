"""How a commit is published in one tree: the order of its paths, and what of it waits.

Only composes: the rules of client.toml and of the upstream, the profiles, the snapshot, and
the record of deletions that wait.
"""

from collections import defaultdict
from stat import S_ISDIR

from huai_client.config import Module
from huai_client.diff.candidates import Survey, digest_here
from huai_client.durations import seconds
from huai_client.filters import EVERYTHING, Rules
from huai_client.metadata.repository import Commit
from huai_client.plan.delayed_deletes import Grace, PutOff, back_again, put_off
from huai_client.plan.operations import Plan, Remove
from huai_client.plan.order.lookup import Lookup
from huai_client.plan.order.order import PublishOrder
from huai_client.plan.order.profiles import profiles
from huai_client.plan.order.profiles import volatile as known_volatile
from huai_client.plan.stages import POINTERS
from huai_client.plan.summary import TooManyDeletionsError, allowed_deletions
from huai_client.state.delayed_deletion import DelayedDeletion
from huai_client.tree import View
from huai_schema.codec.descriptor import Descriptor
from huai_schema.codec.publish_rules import (
    ProfileRule,
    VolatileRule,
    own_rules,
    usable_rules,
    volatile_rules,
)
from huai_schema.paths import RelPath, parent
from huai_schema.program.configuration import ConfigError, closest


class Publication:
    """One commit, to be published in one tree."""

    def __init__(
        self,
        commit: Commit,
        module: Module,
        waiting: list[DelayedDeletion],
        rules: Rules = EVERYTHING,
    ) -> None:
        """`waiting` is what is recorded, `rules` the filter.

        Repositories are recognised by what the upstream has, whether it is mirrored or not.
        Raises `ConfigError` for a profile that there is not.
        """
        own = own_rules(module.publish)
        for rule in own:
            if isinstance(rule, ProfileRule) and rule.profile not in profiles():
                raise ConfigError(
                    f"publish rule {rule.text!r}: there is no profile {rule.profile!r}",
                    hint=closest(rule.profile, profiles()),
                )
        self._waiting = waiting
        self._rules = rules
        self._patience = seconds(module.delete_after)
        self._lookup = Lookup(commit.snapshot)
        upstream = usable_rules(commit.descriptor.publish)
        volatile = volatile_files(module, commit.descriptor)
        self.order = PublishOrder(self._lookup, profiles(), own, upstream, volatile)

    def narrowed(self, survey: Survey, view: View | None) -> Survey:
        """The survey with what waits in mind, which is not extraneous, and of unknown content."""
        waits = {each.path for each in self._waiting}
        if view is None or not waits:
            return survey
        extraneous = [path for path in survey.extraneous if path not in waits]
        candidates = [
            back_again(each, lambda path: digest_here(view, path)) if each.path in waits else each
            for each in survey.candidates
        ]
        return survey._replace(candidates=candidates, extraneous=extraneous)

    def put_off(self, plan: Plan, view: View | None, now: int) -> PutOff:
        """The plan with the deletions that are due, and without those that are not yet.

        Without `view` nothing is put off, and what waits goes on waiting.
        """
        if view is None:
            return PutOff(plan, self._waiting, 0)
        here = [each for each in self._waiting if _still_there(view, each)]
        return put_off(plan, here, Grace(now, self._patience, self._at_once, self._names))

    def bereft(self, view: View | None) -> set[RelPath]:
        """Directories in which something waited and is gone: an interrupted run deleted it."""
        if view is None:
            return set()
        gone = (each for each in self._waiting if not _still_there(view, each))
        folders = {DelayedDeletion(parent(each.path), directory=True, since=0) for each in gone}
        return {each.path for each in folders if _still_there(view, each)}

    def due(self, plan: Plan) -> list[list[Remove]]:
        """The deletions of `plan` that waited, those of each earlier run by themselves."""
        since = {each.path: each.since for each in self._waiting}
        runs: dict[int, list[Remove]] = defaultdict(list)
        for item in plan.removals:
            if item.path in since:
                runs[since[item.path]].append(item)
        return list(runs.values())

    def check_due(self, plan: Plan, limit: str, entries: int) -> None:
        """Hold deletions that waited against `limit`, those of each earlier run by themselves.

        `entries` are those of the tree.

        They were within the limit when they were put off; it may be another one by now.
        Raises `TooManyDeletionsError`.
        """
        allowed = allowed_deletions(limit, entries)
        for removals in self.due(plan):
            count = len(removals)
            if count > allowed:
                raise TooManyDeletionsError(
                    f"{count:,} delayed deletions are due, more than the {allowed:,} that "
                    f"max_delete = {limit!r} allows; nothing was touched",
                    hint=f"if that is right: --max-delete {count}",
                )

    def _names(self, path: RelPath) -> bool:
        """Whether something is to stand at `path`."""
        directory = self._lookup.is_directory(path)
        named = directory or self._lookup.names(path)
        return named and self._rules.reaches(path, directory=directory)

    def _at_once(self, item: Remove) -> bool:
        return not item.directory and self.order.stage_of(RelPath(item.path)) == POINTERS


def volatile_files(module: Module, descriptor: Descriptor) -> list[VolatileRule]:
    """Which files change without a commit: what client.toml says, else what is known of them."""
    if module.volatile is not None:
        rules = own_rules(volatile_rules(module.volatile))
    else:
        rules = [*own_rules(module.publish), *usable_rules(descriptor.publish), *known_volatile()]
    return [rule for rule in rules if isinstance(rule, VolatileRule)]


def _still_there(view: View, waiting: DelayedDeletion) -> bool:
    """Whether the path is there as what it was; else somebody else has dealt with it."""
    status = view.stat(waiting.path)
    return status is not None and S_ISDIR(status.st_mode) == waiting.directory
