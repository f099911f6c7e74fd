from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from huai_client.transfer.batch import batches
from huai_schema.entries import File
from huai_schema.paths import parent, rel_path

FILES = st.lists(st.tuples(st.integers(0, 2), st.sampled_from((0, 60, 20_000))), max_size=60).map(
    lambda found: [
        File(rel_path(b"%d/%d" % (folder, number)), size, 0)
        for number, (folder, size) in enumerate(sorted(found))
    ]
)
BOUNDS = {
    "enough": st.integers(1, 10),
    "max_files": st.integers(1, 20),
    "max_bytes": st.integers(1, 160_000),
}


@given(files=FILES, **BOUNDS)
def test_nothing_is_lost_order_is_kept_and_bounds_hold(
    files: list[File], enough: int, max_files: int, max_bytes: int
) -> None:
    cut = list(batches(files, enough=enough, max_files=max_files, max_bytes=max_bytes))
    assert [file for batch in cut for file in batch] == files
    assert all(cut)
    for batch in cut:
        assert len(batch) <= max_files
        assert len(batch) == 1 or sum(file.size for file in batch) <= max_bytes


@given(files=FILES, **BOUNDS)
def test_a_batch_ends_where_it_has_to_or_may(
    files: list[File], enough: int, max_files: int, max_bytes: int
) -> None:
    cut = list(batches(files, enough=enough, max_files=max_files, max_bytes=max_bytes))
    for batch, following in pairwise(cut):
        size = sum(file.size for file in batch)
        same = parent(batch[-1].path) == parent(following[0].path)
        has_to = len(batch) == max_files or size + following[0].size > max_bytes
        may = len(batch) >= enough and (not same or size > len(batch) << 14)
        assert has_to or may
    for batch in cut:
        for number in range(enough, len(batch)):
            prefix = batch[:number]
            assert parent(prefix[-1].path) == parent(batch[number].path)
            assert sum(file.size for file in prefix) <= number << 14
