"""What may still be published when some content did not arrive."""

from huai_client.plans.operations import Move, Plan, Remove, Stage
from huai_client.plans.stages import STAGES
from huai_client.plans.withhold import withhold
from tests.local_trees import at, directory, file, linked, symlink

GOOD, BAD, INDEX = file(b"good"), file(b"bad"), file(b"dists/Packages")


def plan(payload: Stage, moves: list[Move], *, clear: bool = False) -> Plan:
    stages = [payload, Stage(STAGES[1], [INDEX]), Stage(STAGES[2], [file(b"latest")])]
    removals = [Remove(at(b"goes"), directory=False)]
    directories = [directory(b"new/sub"), directory(b"new"), directory(b"")]
    cleared = [Remove(at(b"way"), directory=False)] if clear else []
    return Plan(cleared, [at(b"made")], moves, stages, removals, directories)


def test_payload_that_came_is_published() -> None:
    links = [linked(b"good2", GOOD), linked(b"bad2", BAD)]
    payload = Stage(STAGES[0], [GOOD, BAD], links, [symlink(b"s")], [file(b"touched")])
    part = withhold(plan(payload, []), [BAD])
    assert part.make == [b"made"]
    assert part.stages == [
        Stage(STAGES[0], [GOOD], [links[0]], [symlink(b"s")], [file(b"touched")])
    ]
    assert not part.removals
    assert [entry.path for entry in part.directories] == [b"new/sub", b"new", b""]


def test_nothing_that_depends_on_a_move() -> None:
    moves = [Move(at(b"old"), at(b"new"))]
    links = [linked(b"member", file(b"new/leader"))]
    payload = Stage(STAGES[0], [GOOD, file(b"old")], links, [symlink(b"old")])
    part = withhold(plan(payload, moves), [BAD])
    assert part.stages == [Stage(STAGES[0], [GOOD])]
    assert [entry.path for entry in part.directories] == [b""]
    assert not part.moves


def test_nothing_at_all_if_something_is_in_the_way() -> None:
    part = withhold(plan(Stage(STAGES[0], [GOOD]), [], clear=True), [BAD])
    assert part == Plan([], [], [], [], [], [])
