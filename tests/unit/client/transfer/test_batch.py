from huai_client.transfer.batch import batches
from huai_schema.entries import File
from huai_schema.paths import rel_path


def _files(*sizes: int) -> list[File]:
    return [File(rel_path(b"%d" % i), size, 0) for i, size in enumerate(sizes)]


def test_nothing_makes_no_batch() -> None:
    assert list(batches([])) == []


def test_the_number_of_files_is_bounded() -> None:
    cut = batches(_files(1, 1, 1, 1, 1), max_files=2, max_bytes=100)
    assert [len(batch) for batch in cut] == [2, 2, 1]


def test_the_bytes_are_bounded() -> None:
    cut = batches(_files(6, 4, 1, 9, 2), max_files=10, max_bytes=10)
    assert [[file.size for file in batch] for batch in cut] == [[6, 4], [1, 9], [2]]


def test_a_file_above_the_bound_travels_alone() -> None:
    cut = batches(_files(1, 50, 1), max_files=10, max_bytes=10)
    assert [[file.size for file in batch] for batch in cut] == [[1], [50], [1]]
