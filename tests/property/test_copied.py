"""The engine copies from a path like rsync: the same files arrive, are missing or differ."""

import os
import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from huai_client.transfer.fetch import Outcome
from huai_client.transfer.options import TransferOptions
from huai_schema.paths import RelPath
from tests.support.transfers import BY_RSYNC, Downstream, described, write_file

T0 = 1_600_000_000_123_456_789
RSYNC = TransferOptions(extra=BY_RSYNC, retries=0)
ENGINE = TransferOptions(program="rsync-that-is-not-installed", retries=0)
CHANGES = ("none", "gone", "longer", "shorter", "later", "other", "folder", "symlink", "fifo")
SIZES = st.sampled_from([0, 1, 4096, 5000, 300_000])
CASES = st.lists(st.tuples(SIZES, st.booleans(), st.sampled_from(CHANGES)), min_size=1, max_size=12)


def change(place: Path, how: str) -> None:
    """Change a file after it was committed."""
    content = place.read_bytes()
    if how in {"gone", "folder", "symlink", "fifo"}:
        place.unlink()
    if how == "folder":
        place.mkdir()
    elif how == "symlink":
        place.symlink_to("0")
    elif how == "fifo":
        os.mkfifo(place)
    elif how in {"longer", "shorter", "other"}:
        contents = {"longer": content + b"x", "shorter": content[1:], "other": content[::-1]}
        place.write_bytes(contents[how])
        os.utime(place, ns=(T0, T0))
    elif how == "later":
        os.utime(place, ns=(T0, T0 + 10**9))


def verdicts(outcome: Outcome) -> list[list[RelPath]]:
    """Return the paths by result."""
    assert outcome.late == []
    result = (outcome.arrived, outcome.missing, outcome.mismatched, outcome.unchanged)
    return [[file.path for file in files] for files in result]


@given(CASES, st.booleans())
def test_the_same_verdicts_as_by_rsync(cases: list[tuple[int, bool, str]], volatile: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        upstream = folder / "upstream"
        files = []
        for number, (size, digest, _) in enumerate(cases):
            path = b"d%d/%d" % (number % 3, number)
            write_file(upstream, path, os.urandom(size), mtime=T0)
            files.append(described(upstream, path, digest=digest))
        for file, (_, _, how) in zip(files, cases, strict=True):
            change(upstream / os.fsdecode(file.path), how)
        results = []
        for options in (RSYNC, ENGINE):
            paths = {file.path for file in files} if volatile else frozenset()
            down = Downstream(folder / options.program)
            outcome = down.fetch(files, str(upstream), replace(options, volatile=paths))
            results.append((verdicts(outcome), outcome.newer))
        assert results[0] == results[1]
