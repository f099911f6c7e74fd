"""A power cut at any moment of a sync: nothing that was published as good is lost or half.

What is on the disk afterwards is not tried but derived (`tests.support.crash_states`), from the
system calls of a real sync, rsync's included, so that it is the worst that may happen.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from huai_client.publish import executor
from huai_client.staging import ready_store
from tests.fault.sampling import ALL, LONG, chance, spread
from tests.fault.story import Story, finish
from tests.support.crash_states import Moment, Node, Recorder, State, crash_states, lay
from tests.support.system_calls import CHANGING, Call, supervise
from tests.support.upstream import Downstream, Upstream, refresh

Tree = dict[str, Node]
STATES_MAX = 40
"""There are some thousand moments, each with up to some hundred states."""
EXTREMES = 4
"""The states of a crash that come before those of single changes."""
STAGING = ".~tmp~"


@dataclass
class Recorded:
    """A sync to the second commit, from the first or from nothing."""

    up: Upstream
    commit: str
    down: Downstream
    before: Tree
    after: Tree
    moments: list[Moment]

    def states(self) -> Iterator[tuple[Call, State]]:
        """Return what some cuts may leave, the last one included, with the call that follows."""
        step = 1 if ALL else 10
        start = chance("power").randrange(step)
        for moment in (*self.moments[start:-1:step], self.moments[-1]):
            for state in crash_states(moment):
                yield moment.call, state

    def state_file(self, state: State) -> dict[str, object] | None:
        """The records in a state of the disk."""
        place = self.down.state_file.relative_to(self.down.root.parent)
        inode = state.inode(str(place))
        if inode is None:
            return None
        values: dict[str, object] = json.loads(state.nodes[inode].data)
        return values


def tree_of(state: State, top: str = "") -> Tree:
    """All that is published; "" is the top directory."""
    inode = state.inode(top)
    if inode is None:
        return {}
    paths = {"": inode, **state.paths(inode)}
    return {path: state.nodes[at] for path, at in paths.items() if STAGING not in path.split("/")}


def look(folder: Path) -> Tree:
    with Recorder(folder) as recorder:
        return tree_of(recorder.look())


def record(story: Story, folder: Path, *, empty: bool) -> Recorded:
    up = story.publish("b")
    down = story.downstream(folder, up, empty=empty)
    before = look(down.dest)
    with Recorder(folder) as recorder:
        outcome = supervise(CHANGING, lambda: int(down.observed().exit_code), recorder.before)
    assert outcome.result == 0, outcome.result
    assert len(recorder.moments) > 100, "the cuts miss the run"
    return Recorded(up, story.commits["b"], down, before, look(up.tree), recorder.moments)


@pytest.fixture(
    name="recorded",
    scope="module",
    params=[(False, 0), (False, 10**6), (True, 0)],
    ids=["update", "small update", "first"],
)
def recorded_sync(
    story: Story, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Recorded]:
    """By syncfs for the whole file system, or by fsync for each file and directory."""
    empty, few = request.param
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executor, "_FEW", few)
        yield record(story, tmp_path_factory.mktemp("recorded"), empty=empty)


@pytest.mark.slow
@pytest.mark.timeout(LONG)
def test_no_file_is_half_and_what_is_said_to_be_applied_is_there(recorded: Recorded) -> None:
    versions: dict[str, set[bytes]] = {}
    for tree in (recorded.before, recorded.after):
        for path, node in tree.items():
            # What changes in a directory that moves is as before at its new place, until it is
            # replaced; if the rename is lost, the new content is at the old name.
            places = (path, path.replace("moves/", "moved/"), path.replace("moved/", "moves/"))
            for place in places:
                versions.setdefault(place, set()).add(node.data)
    applied = 0
    for call, state in recorded.states():
        published = tree_of(state, "dest")
        half = [path for path, node in published.items() if node.data not in versions[path]]
        assert half == [], call
        serial = recorded.state_file(state)
        if serial and not serial["attempted"] and serial["applied"] == recorded.commit:
            applied += 1
            assert published == recorded.after, call
    assert applied > 0


@pytest.mark.slow
@pytest.mark.timeout(LONG)
def test_the_next_sync_finishes(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    boot = tmp_path / "boot"
    boot.write_text("another boot")
    monkeypatch.setattr(ready_store, "BOOT_ID", boot)
    laid = tmp_path / "laid"
    down = Downstream(recorded.down.name, laid / "dest", laid / "root")
    for moment in spread(recorded.moments, STATES_MAX):
        states = list(crash_states(moment))
        for state in [*states[:EXTREMES], *spread(states[EXTREMES:], STATES_MAX)]:
            refresh(laid)
            lay(state, laid)
            down.configure(dest=str(down.dest))
            finish(down, recorded.up)
