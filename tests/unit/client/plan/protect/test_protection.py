"""Protected paths, and how a comparison leaves them out."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from huai_client.diff.candidate import Candidate, Difference, DifferenceKind, TreeDiff
from huai_client.filters import FilterError
from huai_client.plan.protect import Protection, drop_protected, without_expected
from huai_client.tree import View
from tests.support.local_trees import at, directory, file, linked, symlink


@pytest.fixture
def view(tmp_path: Path) -> Iterator[View]:
    with View(tmp_path) as opened:
        yield opened


def make_files(folder: Path, *paths: str) -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(b"here")


def paths_of(diff: TreeDiff) -> list[bytes]:
    return [each.path for each in diff.candidates]


def test_what_is_covered(subtests: pytest.Subtests) -> None:
    for pattern, path, is_directory, covered in [
        ("/project/trace/my.host", b"project/trace/my.host", False, True),
        ("/project/trace/my.host", b"a/project/trace/my.host", False, False),
        ("/project/trace/my.host", b"project/trace", True, False),
        ("*.local", b"a/b.local", False, True),
        ("*.local", b"a.local/b/c", False, True),
        ("/logs/", b"logs", True, True),
        ("/logs/", b"logs", False, False),
        ("/logs/", b"logs/today", False, True),
        ("/own/**", b"own", True, False),
        ("/own/**", b"own/a/b", False, True),
        ("*", b"", True, False),
        ("#odd", b"#odd", False, True),
    ]:
        with subtests.test(pattern=pattern, path=path, is_directory=is_directory, covered=covered):
            assert Protection([pattern]).covers(at(path), directory=is_directory) is covered


def test_a_pattern_that_is_none() -> None:
    with pytest.raises(FilterError):
        Protection([""])


def test_no_operation_on_what_is_protected(view: View) -> None:
    diff = TreeDiff(
        [
            Candidate(at(b"own"), file(b"own"), file(b"own", 20)),
            Candidate(at(b"own2"), None, file(b"own2")),
            Candidate(at(b"fifo"), None, file(b"fifo"), special=True),
            Candidate(at(b"a.local"), directory(b"a.local"), None),
            Candidate(at(b"a.local/x"), None, symlink(b"a.local/x")),
            Candidate(at(b"other"), file(b"other"), None),
        ],
        [],
        [at(b"stranger"), at(b"b.local")],
    )
    protected_diff = drop_protected(diff, Protection(["/own*", "*.local", "/fifo"]), view)
    assert paths_of(protected_diff) == [b"other"]
    assert protected_diff.extraneous == [b"stranger"]


def test_what_holds_something_protected_stays(view: View, tmp_path: Path) -> None:
    make_files(
        tmp_path, "gone/deep/er/x.local", "gone/other", "turns/x.local", "turns/y", "empty/z"
    )
    diff = TreeDiff(
        [
            Candidate(at(b"gone"), directory(b"gone"), None),
            Candidate(at(b"gone/deep"), directory(b"gone/deep"), None),
            Candidate(at(b"gone/deep/er"), directory(b"gone/deep/er"), None),
            Candidate(at(b"gone/other"), file(b"gone/other"), None),
            Candidate(at(b"turns"), directory(b"turns"), file(b"turns"), differing=TYPE),
            Candidate(at(b"turns/y"), file(b"turns/y"), None),
            Candidate(at(b"empty"), directory(b"empty"), None),
            Candidate(at(b"empty/z"), file(b"empty/z"), None),
        ],
        [],
        [],
    )
    protected_diff = drop_protected(diff, Protection(["*.local"]), view)
    assert paths_of(protected_diff) == [b"empty", b"empty/z", b"gone/other", b"turns/y"]


TYPE = frozenset({"type"})


def test_a_hardlink_of_something_left_out_is_a_file(view: View) -> None:
    leader = file(b"a.local")
    diff = TreeDiff(
        [
            Candidate(at(b"b"), None, linked(b"b", leader)),
            Candidate(at(b"c"), file(b"c"), linked(b"c", leader), links=2),
            Candidate(at(b"d"), None, linked(b"d", file(b"e"))),
        ],
        [],
        [],
    )
    alone, shared, other = drop_protected(diff, Protection(["*.local"]), view).candidates
    assert alone.expected == leader._replace(path=at(b"b"))
    assert shared.expected == leader._replace(path=at(b"c"))
    # Changed in place, it would change the protected file too.
    assert shared.differing == {"link"}
    assert other.expected == linked(b"d", file(b"e"))


def test_what_verify_finds(view: View, tmp_path: Path) -> None:
    make_files(tmp_path, "strange/x.local", "stranger/x", "trace/x.local", "trace2/x")
    differences = [
        Difference(at(b"strange"), DifferenceKind.EXTRANEOUS),
        Difference(at(b"strange/x.local"), DifferenceKind.EXTRANEOUS),
        Difference(at(b"stranger"), DifferenceKind.EXTRANEOUS),
        Difference(at(b"stranger/x"), DifferenceKind.EXTRANEOUS),
        Difference(at(b"gone.local"), DifferenceKind.MISSING),
        Difference(at(b"trace"), DifferenceKind.DIFFERS, ("mtime",)),
        Difference(at(b"trace"), DifferenceKind.DIFFERS, ("mode", "mtime")),
        Difference(at(b"trace2"), DifferenceKind.DIFFERS, ("mtime",)),
        Difference(at(b"trace2/x"), DifferenceKind.DIFFERS, ("mtime",)),
    ]
    unexpected = list(without_expected(differences, Protection(["*.local"]), view))
    assert unexpected == [differences[2], differences[3], *differences[6:]]
    assert list(without_expected(differences, Protection([]), view)) == differences


def test_where_a_directory_may_move() -> None:
    anchored, by_name = Protection(["/a/own"]), Protection(["*.local"])
    assert not anchored.same_protection(at(b"a"), at(b"b"))
    assert not anchored.same_protection(at(b"b"), at(b"a"))
    assert not anchored.same_protection(at(b"c"), at(b"a/own"))
    assert anchored.same_protection(at(b"b"), at(b"c"))
    assert not by_name.same_protection(at(b"b"), at(b"c.local"))
    assert by_name.same_protection(at(b"b"), at(b"c"))
