"""Any objects in any order: git unpacks what was packed."""

import subprocess
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from huai_schema.git.objects import object_id
from huai_server.store.pack_writer import PackWriter
from tests.support.committing import ENVIRONMENT, SECONDS

SIZES = st.one_of(
    st.integers(0, 40), st.sampled_from([127, 128, 2047, 2048, 65_535]), st.integers(0, 300_000)
)
BLOBS = st.lists(
    st.builds(lambda seed, size: (seed * (size + 1))[:size], st.binary(min_size=1), SIZES)
)


@settings(max_examples=25)
@given(blobs=BLOBS, level=st.sampled_from([0, 1, 6, 9]))
def test_git_indexes_it_to_the_same_bytes(blobs: list[bytes], level: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        writer = PackWriter(Path(folder), (), level=level)
        oids = [writer.write("blob", blob) for blob in blobs]
        assert oids == [object_id("blob", blob) for blob in blobs]
        path = writer.finish()
        if path is None:
            assert not blobs
            return
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
