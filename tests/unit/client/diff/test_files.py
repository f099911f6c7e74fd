"""Files of a plan: rows of the engine and lists behave alike."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from huai_client.diff.candidate import Candidate
from huai_client.diff.files import chosen, digests, joined, paths, sizes, within, without
from huai_client.diff.reuse import twins
from huai_client.diff.table import CandidateTable
from huai_native import _native
from huai_schema.entries import File
from tests.support.local_trees import at, file

CONTENTS = [None, b"\1" * 32, b"\2" * 32]
NAMES = st.binary(min_size=1, max_size=3).filter(
    lambda name: not {*b"\0/"} & {*name} and name not in (b".", b"..")
)
FILES = st.builds(
    lambda name, size, digest: file(name)._replace(size=size, digest=digest),
    NAMES,
    st.integers(0, 2),
    st.sampled_from(CONTENTS),
)
PARTS = st.lists(
    st.tuples(st.booleans(), st.lists(FILES, max_size=5, unique_by=lambda each: each.path)),
    max_size=4,
)


def rows_of(files: Sequence[File]) -> Sequence[File]:
    """As a planner gives them."""
    plan = CandidateTable.of(Candidate(each.path, None, each) for each in files).engine.plan()
    ((fetches, *_),) = plan.in_stages(1, bytes(len(plan)))
    assert isinstance(fetches, _native.Rows)
    return fetches


def of_parts(parts: list[tuple[bool, list[File]]]) -> tuple[Sequence[File], list[File]]:
    """Return files, some of them as rows, and the same files as a list."""
    sequences = [rows_of(files) if is_rows else files for is_rows, files in parts]
    return joined(*sequences), [each for part in sequences for each in part]


def test_parts_of_one_table_stay_rows() -> None:
    files = rows_of([file(b"a"), file(b"b"), file(b"c")])
    together = joined(files[2:], [], files[:1])
    assert isinstance(together, _native.Rows)
    assert [each.path for each in together] == [b"c", b"a"]
    assert isinstance(joined(files, rows_of([file(b"d")])), list)


@given(PARTS)
def test_they_are_the_same_as_a_list(parts: list[tuple[bool, list[File]]]) -> None:
    files, expected = of_parts(parts)
    assert (len(files), [*files], bool(files)) == (len(expected), expected, bool(expected))
    assert [files[place] for place in range(len(files))] == expected
    assert [files[place] for place in range(-len(files), 0)] == expected
    assert [*paths(files)] == [each.path for each in expected]
    assert [*sizes(files)] == [each.size for each in expected]
    assert [*digests(files)] == [each.digest for each in expected]


@given(PARTS, st.data())
def test_some_of_them(parts: list[tuple[bool, list[File]]], data: st.DataObject) -> None:
    files, expected = of_parts(parts)
    begin = data.draw(st.integers(0, len(files)))
    end = data.draw(st.integers(begin, len(files)))
    assert [*files[begin:end]] == expected[begin:end]
    places = [place for place in range(len(files)) if data.draw(st.booleans())]
    assert [*chosen(files, places)] == [expected[place] for place in places]
    meant = {expected[place].path for place in places}
    assert [*within(files, meant)] == [each for each in expected if each.path in meant]
    assert [*without(files, meant)] == [each for each in expected if each.path not in meant]


@given(PARTS)
def test_twins_are_files_of_equal_content(parts: list[tuple[bool, list[File]]]) -> None:
    unique = {twin.path: (is_rows, twin) for is_rows, files in parts for twin in files}
    files, expected = of_parts([(is_rows, [twin]) for is_rows, twin in unique.values()])
    first: dict[object, File] = {}
    sources = {path: reuse.source for path, reuse in twins(files)}
    for twin in expected:
        content = twin.digest, twin.size
        if not twin.digest or not twin.size or first.setdefault(content, twin) is twin:
            assert twin.path not in sources
        else:
            assert sources[twin.path] == first[content].path


def test_what_arrived_is_told_by_path_and_content() -> None:
    listed = [file(b"a"), file(b"b"), file(b"c")._replace(digest=CONTENTS[1])]
    for files in (listed, rows_of(listed)):
        arrived = _native.Arrived()
        arrived.add(files[:1], 7)
        arrived.add(files[2:], 8)
        arrived.finish(files[2:])
        assert (len(arrived), arrived.unfinished(files)) == (2, [0, 1])
        assert arrived.runs(files) == [7, None, 8]
        assert arrived.directories(files) == [
            (b"", n, n + 1, run) for n, run in enumerate([7, None, 8])
        ]
        undigested = [
            listed[2]._replace(digest=CONTENTS[2]),
            listed[0]._replace(mtime=1),
        ]
        assert arrived.runs(undigested) == [None, None]
        assert (arrived.has(at(b"c"), 8), arrived.has(at(b"c"), 7)) == (True, False)
