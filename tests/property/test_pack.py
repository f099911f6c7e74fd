"""git unpacks packs of any objects in any order."""

import subprocess
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from huai_native._native import PackWriter
from tests.support.committing import ENVIRONMENT, SECONDS
from tests.support.examples import examples
from tests.support.git_objects import object_id
from tests.support.memory_disk import memory_folder

SIZES = st.one_of(
    st.integers(0, 40), st.sampled_from([127, 128, 2047, 2048, 65_535]), st.integers(0, 300_000)
)
BLOBS = st.lists(
    st.builds(lambda seed, size: (seed * (size + 1))[:size], st.binary(min_size=1), SIZES)
)


@examples(25)
@given(blobs=BLOBS, threads=st.integers(1, 3))
def test_git_indexes_it_to_the_same_bytes(blobs: list[bytes], threads: int) -> None:
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        writer = PackWriter(folder.encode(), b"tmp_x", threads=threads)
        oids = [writer.write("blob", blob) for blob in blobs]
        assert oids == [object_id("blob", blob) for blob in blobs]
        name = writer.finish()
        if name is None:
            assert not blobs
            return
        path = Path(folder) / f"{name.decode()}.pack"
        again = Path(folder) / "again.idx"
        done = subprocess.run(
            ["git", "index-pack", "--strict", "-o", str(again), str(path)],
            env=ENVIRONMENT,
            cwd=folder,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert again.read_bytes() == path.with_suffix(".idx").read_bytes()
