"""The records of huai-client that a relay reads, as huai-client writes them."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from huai_client.state.state import State, save
from huai_schema.codec.applied import AppliedRecord
from huai_server.relay.applied import AppliedStateError, Downstream, NotWholeError

COMMIT = "1" * 40


@pytest.fixture
def downstream(tmp_path: Path) -> Downstream:
    downstream = Downstream(tmp_path, "m")
    downstream.folder.mkdir(parents=True)
    return downstream


def test_what_a_client_wrote(downstream: Downstream) -> None:
    (downstream.folder / "applied").write_bytes(AppliedRecord(COMMIT, "").encode())
    assert downstream.read() == (COMMIT, downstream.folder / "repository.git")
    save(downstream.folder / "state.json", State(applied="2" * 40, partial="protect"))
    assert downstream.read().commit == COMMIT


def test_a_record_of_a_part(downstream: Downstream) -> None:
    (downstream.folder / "applied").write_bytes(AppliedRecord(COMMIT, "a\nfilter").encode())
    with pytest.raises(NotWholeError, match="m is not the whole mirror: a\nfilter"):
        downstream.read()


@pytest.mark.parametrize("kind", ["empty", "other", "directory"])
def test_a_record_that_cannot_be_read(downstream: Downstream, kind: str) -> None:
    save(downstream.record, State(applied=COMMIT, serial=7, partial=""))
    record = downstream.folder / "applied"
    if kind == "directory":
        record.mkdir()
    else:
        record.write_text("" if kind == "empty" else "huai-applied 2\n")
    with pytest.raises(AppliedStateError):
        downstream.read()


def test_the_state_of_a_client_that_wrote_no_record_yet(downstream: Downstream) -> None:
    save(downstream.record, State(applied=COMMIT, serial=7, partial=""))
    assert downstream.read() == (COMMIT, downstream.folder / "repository.git")


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (State(), "nothing is applied yet"),
        (State(applied=COMMIT), "an older huai-client"),
        (State(applied=COMMIT, partial="a filter"), "m is not the whole mirror: a filter"),
    ],
)
def test_a_tree_that_is_not_the_commit(downstream: Downstream, state: State, reason: str) -> None:
    save(downstream.record, state)
    with pytest.raises(NotWholeError, match=reason):
        downstream.read()


def test_a_module_that_was_never_synced(downstream: Downstream) -> None:
    with pytest.raises(NotWholeError, match="was never synced"):
        downstream.read()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "[" * 100_000,
        '{"version": 2}',
        json.dumps({**asdict(State(applied=COMMIT, partial="")), "version": "1"}),
    ],
)
def test_what_is_no_state_file(downstream: Downstream, text: str) -> None:
    downstream.record.write_text(text)
    with pytest.raises(AppliedStateError):
        downstream.read()


def test_what_cannot_be_read(downstream: Downstream) -> None:
    downstream.record.mkdir()
    with pytest.raises(AppliedStateError, match="Is a directory"):
        downstream.read()
