"""A proof and `in_place`: what is refused stays, and no index is changed where it stands."""

import os

import pytest

from huai_client.config.hooks import Proof
from huai_schema.limits import BLOCK_INDEX_MIN
from tests.support.archive import BINARY, DISTS, UNPROVED, Archive, Signer
from tests.support.nginx import nginx
from tests.support.reflinks import shares_blocks
from tests.support.upstream import Downstream, Site, Upstream, assert_equal

PADDING = "".join(f" {number:0{63}}\n" for number in range(10_000))
IMAGE = "pool/main/disk.img"
BLOCK = os.urandom(64 << 10)


def update(up: Upstream, archive: Archive, version: str, key: str) -> None:
    """Release a version whose signed files and indices are large, with an image next to them."""
    archive.package("hello", version)
    archive.index()
    for name in (f"{DISTS}/Release", f"{BINARY}/Packages"):
        with (up.tree / name).open("a") as file:
            file.write(f"X-Padding:\n{PADDING}")
    archive.sign(key)
    (up.tree / IMAGE).write_bytes(BLOCK * 3 + version.encode() * len(BLOCK))
    up.commit()


def inodes(down: Downstream, *names: str) -> list[int]:
    return [(down.dest / name).stat().st_ino for name in names]


def contents(down: Downstream, *names: str) -> list[bytes]:
    return [(down.dest / name).read_bytes() for name in names]


@pytest.mark.parametrize("how", ["gpgv", "command"])
def test_a_refused_proof_leaves_what_may_be_changed_in_place(
    place: Site, signer: Signer, how: str
) -> None:
    up = place.upstream(block_index=BLOCK_INDEX_MIN)
    archive = Archive(up.tree, signer)
    update(up, archive, "1", "old")
    keyring = str(signer.home.parent / "old.gpg")
    gpgv = ("/usr/bin/gpgv", "--keyring", keyring, f"{DISTS}/InRelease")
    proof = Proof(gpgv=keyring) if how == "gpgv" else Proof(command=gpgv)
    signed_paths = [f"{DISTS}/InRelease", f"{DISTS}/Release", f"{BINARY}/Packages"]
    assert all((up.tree / name).stat().st_size > BLOCK_INDEX_MIN for name in (*signed_paths, IMAGE))
    with nginx(up.tree.parent) as web:
        down = place.synced_downstream(
            up, content_urls=(f"{web.url}/{up.name}",), in_place=["*"], proofs={"apt": proof}
        )
        before = contents(down, *signed_paths)
        were = inodes(down, *signed_paths, IMAGE)
        update(up, archive, "2", "new")
        for _ in range(2):
            assert down.sync().code == UNPROVED
            assert contents(down, *signed_paths) == before
            assert contents(down, IMAGE) == [(up.tree / IMAGE).read_bytes()]
        assert (inodes(down, IMAGE) == were[-1:]) != shares_blocks(down.dest)
        update(up, archive, "3", "old")
        assert down.sync().code == 0
        assert_equal(up, down)
        # Who reads an index meanwhile reads one version of it.
        assert not {*were[:-1]} & {*inodes(down, *signed_paths)}
