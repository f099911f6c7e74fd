"""The first of two stages: the paths that some rules include, without deletions."""

from dataclasses import replace

import pytest

from huai_client.diff.candidate import Move, Remove, Reuse
from huai_client.filters import Rules
from huai_client.plan.operations import Plan, Stage
from huai_client.plan.prepared import NotInPartError, restricted
from huai_schema.entries import Directory, File, Symlink
from huai_schema.paths import RelPath

RULES = Rules.parse([b"- *.iso", b"- /dists/"])


def file(path: bytes, link: bytes | None = None) -> File:
    """Return a file of any content."""
    return File(RelPath(path), 1, 0, link=None if link is None else RelPath(link))


def plan(*stages: Stage) -> Plan:
    """Return a plan with only these stages."""
    return Plan(clear=[], make=[], moves=[], stages=list(stages), removals=[], directories=[])


def test_what_the_rules_leave_out_stays_as_it_is() -> None:
    full_plan = replace(
        plan(
            Stage(
                "payload",
                fetches=[file(b"a"), file(b"b.iso"), file(b"dists/new/c")],
                symlinks=[Symlink(RelPath(b"l.iso"), b"a", 0), Symlink(RelPath(b"l"), b"a", 0)],
                attributes=[file(b"old.iso"), file(b"old")],
                links=[file(b"a2", b"a"), file(b"b2.iso", b"b.iso")],
            ),
            Stage("indices", fetches=[file(b"dists/Release"), file(b"Index")]),
        ),
        make=[RelPath(b"dists/new"), RelPath(b"new")],
        removals=[Remove(RelPath(b"gone"), directory=False)],
        directories=[Directory(RelPath(b"dists"), 0), Directory(RelPath(b"new"), 0)],
    )
    part = restricted(full_plan, RULES)
    payload, indices = part.stages
    assert [each.path for each in payload.fetches] == [b"a"]
    assert [each.path for each in payload.symlinks] == [b"l"]
    assert [each.path for each in payload.attributes] == [b"old"]
    assert [each.path for each in payload.links] == [b"a2"]
    assert [each.path for each in indices.fetches] == [b"Index"]
    assert part.make == [b"new"]
    assert [each.path for each in part.directories] == [b"new"]
    assert part.removals == []


def test_no_inode_is_taken_over_from_a_name_that_stays() -> None:
    reuses = {
        RelPath(b"a"): Reuse(RelPath(b"gone"), 0, most_links=3),
        RelPath(b"b.iso"): Reuse(RelPath(b"gone"), 0),
        RelPath(b"c"): Reuse(RelPath(b"b.iso"), 0, twin=True),
        RelPath(b"d"): Reuse(RelPath(b"a"), 0, twin=True),
    }
    fetches = [file(path) for path in reuses]
    part = restricted(replace(plan(Stage("payload", fetches)), reuses=reuses), RULES)
    assert {path: reuse.most_links for path, reuse in part.reuses.items()} == {b"a": 0, b"d": 0}


@pytest.mark.parametrize(
    "full_plan",
    [
        replace(plan(), clear=[Remove(RelPath(b"x"), directory=True)]),
        replace(plan(), moves=[Move(RelPath(b"x"), RelPath(b"y"))]),
        plan(Stage("payload", links=[file(b"a", b"b.iso")])),
    ],
)
def test_what_cannot_be_done_in_part(full_plan: Plan) -> None:
    with pytest.raises(NotInPartError):
        restricted(full_plan, RULES)
