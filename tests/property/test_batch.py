from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from huai_client.transfer.batch import batches
from huai_schema.entries import File
from huai_schema.paths import rel_path

SIZES = st.lists(st.integers(0, 60), max_size=60)


@given(sizes=SIZES, max_files=st.integers(1, 10), max_bytes=st.integers(1, 100))
def test_nothing_is_lost_order_is_kept_and_bounds_hold(
    sizes: list[int], max_files: int, max_bytes: int
) -> None:
    files = [File(rel_path(b"%d" % i), size, 0) for i, size in enumerate(sizes)]
    cut = list(batches(files, max_files=max_files, max_bytes=max_bytes))
    assert [file for batch in cut for file in batch] == files
    assert all(cut)
    for batch in cut:
        assert len(batch) <= max_files
        assert len(batch) == 1 or sum(file.size for file in batch) <= max_bytes


@given(sizes=SIZES, max_files=st.integers(1, 10), max_bytes=st.integers(1, 100))
def test_no_batch_could_have_taken_the_next_file(
    sizes: list[int], max_files: int, max_bytes: int
) -> None:
    files = [File(rel_path(b"%d" % i), size, 0) for i, size in enumerate(sizes)]
    cut = list(batches(files, max_files=max_files, max_bytes=max_bytes))
    for batch, following in pairwise(cut):
        grown = sum(file.size for file in batch) + following[0].size
        assert len(batch) == max_files or grown > max_bytes
