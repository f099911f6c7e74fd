"""Restricts a plan to the paths that some rules include, without deletions: for a first stage.

Pure.  Excluded paths stay unchanged until a whole run.  After a first stage the commit is an
attempted one, never the applied one.
"""

from collections.abc import Collection
from dataclasses import replace

from huai_client.diff.reuse.value import Reuse
from huai_client.filters.rules import Rules
from huai_client.plan.operations import Plan, Stage
from huai_client.plan.prepared import PreparedPlan, summarize
from huai_schema.entries import Directory, Entry
from huai_schema.errors import ExitCode, HuaiError
from huai_schema.paths import RelPath


class NotInPartError(HuaiError):
    """A plan that can only be executed as a whole."""

    exit_code = ExitCode.USAGE


def restrict(prepared: PreparedPlan, rules: Rules | None) -> PreparedPlan:
    """Return `prepared` without the paths that `rules` exclude; without rules all of it.

    Raises `NotInPartError`.
    """
    if rules is None:
        return prepared
    plan = restricted(prepared.plan, rules)
    return prepared._replace(plan=plan, summary=summarize(plan))


def restricted(plan: Plan, rules: Rules) -> Plan:
    """Return the part of `plan` that adds and changes paths which `rules` include.

    Raises `NotInPartError` if the plan moves directories or clears paths for entries of another
    type, or if a hardlink is included and its leader is not.
    """
    links = [file for stage in plan.stages for file in stage.links if _is_included(file, rules)]
    is_split = any(
        file.link is not None and not rules.reaches(file.link, directory=False) for file in links
    )
    if plan.clear or plan.moves or is_split:
        raise NotInPartError(
            "the changes cannot be published without deleting or moving anything",
            hint="run a whole sync, without a first stage",
        )
    stages = [_stage(stage, rules) for stage in plan.stages]
    return replace(
        plan,
        make=[path for path in plan.make if rules.reaches(path, directory=True)],
        stages=stages,
        removals=[],
        directories=[each for each in plan.directories if _is_included(each, rules)],
        reuses=_reuses(plan.reuses, {file.path for stage in stages for file in stage.fetches}),
    )


def _reuses(reuses: dict[RelPath, Reuse], brought: Collection[RelPath]) -> dict[RelPath, Reuse]:
    """Return the reuses of files in `brought`; none takes over an inode: its old name stays."""
    return {
        path: reuse._replace(names=0)
        for path, reuse in reuses.items()
        if path in brought and (not reuse.twin or reuse.source in brought)
    }


def _stage(stage: Stage, rules: Rules) -> Stage:
    return replace(
        stage,
        fetches=[each for each in stage.fetches if _is_included(each, rules)],
        links=[each for each in stage.links if _is_included(each, rules)],
        symlinks=[each for each in stage.symlinks if _is_included(each, rules)],
        attributes=[each for each in stage.attributes if _is_included(each, rules)],
    )


def _is_included(entry: Entry, rules: Rules) -> bool:
    return rules.reaches(entry.path, directory=isinstance(entry, Directory))
