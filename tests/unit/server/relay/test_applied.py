"""The records of huai-client that a relay reads, as huai-client writes them."""

from pathlib import Path

import pytest

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


def test_a_record_of_a_part(downstream: Downstream) -> None:
    (downstream.folder / "applied").write_bytes(AppliedRecord(COMMIT, "a\nfilter").encode())
    with pytest.raises(NotWholeError, match="m is a partial mirror: a\nfilter"):
        downstream.read()


@pytest.mark.parametrize("kind", ["empty", "other", "directory"])
def test_a_record_that_cannot_be_read(downstream: Downstream, kind: str) -> None:
    record = downstream.folder / "applied"
    if kind == "directory":
        record.mkdir()
    else:
        record.write_text("" if kind == "empty" else "huai-applied 2\n")
    with pytest.raises(AppliedStateError):
        downstream.read()


def test_a_module_that_was_never_synced(downstream: Downstream) -> None:
    with pytest.raises(NotWholeError, match="was never synced"):
        downstream.read()
