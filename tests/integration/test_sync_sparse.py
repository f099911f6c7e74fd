"""A filter that names what it mirrors: only the metadata of that are fetched."""

import subprocess
import sys
from pathlib import Path
from zlib import crc32

import pytest

from huai_client.metadata import sparse_fetch, static_fetch
from huai_client.metadata.git import wire
from huai_client.metadata.http import UpstreamDownError
from huai_client.metadata.repository import Repository
from huai_program.listing_hashes import LISTING_HASHES, stored_hashes
from huai_schema.errors import ExitCode
from huai_schema.git.objects import OID_BYTES, decode_tree
from tests.support.git_backend import git_backend
from tests.support.nginx import nginx
from tests.support.partial_mirrors import assert_selected
from tests.support.processes import until
from tests.support.relaying import relaying
from tests.support.signed_upstream import SignedUpstream
from tests.support.upstream import (
    ENVIRONMENT,
    SECONDS,
    Downstream,
    Pair,
    Site,
    assert_equal,
    refresh,
)

PART = ("+ /pool/", "+ /pool/b/***", "- *")


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static_fetch, "LARGE", 0)


@pytest.fixture(name="pair", params=["unsigned", "signed"])
def partial_mirror(
    place: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Pair:
    up = place.upstream()
    if request.param == "signed":
        monkeypatch.setattr(up, "commit", SignedUpstream(up, tmp_path / "keys").commit)
    for folder in (b"pool/a", b"pool/b", b"pool/b/deep", b"images"):
        up.many(folder, 300)
    up.commit()
    return up, place.downstream(up, filter=PART, max_delete="100%")


def parts_here(down: Downstream) -> set[str]:
    """The directories with trees of their own that were fetched."""
    repository = Repository(down.repository, make=False)
    paths: set[str] = set()

    def look(tree: bytes, path: str) -> None:
        if tree not in repository.packs:
            return
        paths.add(path)
        for item in decode_tree(repository.read(tree, "tree")):
            if item.name.startswith(b"="):
                look(item.oid, f"{path}/{item.name[1:].decode()}")

    applied = repository.commit(down.state.applied or "")
    look(applied.snapshot.tree, "")
    return paths


def test_what_is_left_out_is_not_fetched(pair: Pair) -> None:
    up, down = pair
    down.synced()
    assert_selected(up, down, PART)
    assert parts_here(down) == {"", "/pool", "/pool/b", "/pool/b/deep"}
    assert "not known" in down.run("why", down.name, "pool/a").out
    for number in range(15):  # more packs than are kept
        up.put(b"pool/b/deep/%d" % number, b"new")
        up.put(b"pool/a/%d" % number, b"left out")
        up.commit()
        down.synced()
    assert_selected(up, down, PART)
    assert parts_here(down) == {"", "/pool", "/pool/b", "/pool/b/deep"}


def test_a_filter_that_grows_and_goes(pair: Pair) -> None:
    up, down = pair
    down.synced()
    for rules in (("+ /images/***", *PART), ("+ /images/***", "- *"), PART):
        down.configure(filter=rules)
        down.synced()
        assert_selected(up, down, rules)
    up.at(b"pool/a").rename(up.at(b"pool/b/moved"))
    up.commit()
    down.synced()
    assert_selected(up, down, PART)
    down.run("plan", down.name, "--filter", "+ /images/***", "--filter", "- *")
    assert down.synced()["changed"] is False
    down.configure(filter=())
    down.synced()
    assert_equal(up, down)
    up.put(b"images/new", b"new")
    up.commit()
    down.synced()
    assert_equal(up, down)
    assert parts_here(down) == {
        *("", "/images", "/pool", "/pool/b", "/pool/b/deep", "/pool/b/moved"),
    }


def test_the_difference_of_two_parts(pair: Pair) -> None:
    """A directory that one of them lacks was neither added nor removed."""
    up, down = pair
    down.synced()
    larger = ("+ /images/***", *PART)
    for rules in (larger, PART):
        up.put(b"images/new", rules[0].encode())
        up.put(b"pool/b/new", rules[0].encode())
        up.commit()
        down.configure(filter=rules)
        down.synced()
        changes = down.run("diff", down.name).out
        assert "pool/b/new" in changes
        assert "images" not in changes
    assert "\n  commit" not in down.run("why", down.name, "images/new").out


def test_undo_of_another_filter(pair: Pair) -> None:
    up, down = pair
    down.configure(trash="7d")
    down.synced()
    up.at(b"pool/b/0").unlink()
    up.commit()
    down.configure(filter=("+ /images/***", "- *"))
    down.synced()
    assert down.run("undo", down.name).code == 0
    assert down.verify("--content").code == 0
    assert sorted(path.name for path in down.dest.glob("[!.]*")) == ["pool"]


@pytest.mark.parametrize("request_number", [1, 2, 3, 4])
def test_a_fetch_is_killed(pair: Pair, request_number: int) -> None:
    up, down = pair
    program = f"""
import os, signal
from huai_client.metadata import sparse_fetch, static_fetch
from huai_client.metadata.git import wire
from huai_client.metadata.http import UpstreamDownError
static_fetch.LARGE = 0
calls = 0
def killed(*arguments):
    global calls
    calls += 1
    if calls == {request_number}:
        os.kill(os.getpid(), signal.SIGKILL)
    return fetch(*arguments)
fetch = sparse_fetch.SparseFetch._fetch
sparse_fetch.SparseFetch._fetch = killed
from huai_client.cli.main import main
main()
"""
    words = [sys.executable, "-c", program, "--root", str(down.root), "sync", down.name]
    killed = subprocess.run(words, env=ENVIRONMENT, timeout=SECONDS, check=False)
    assert killed.returncode == -9
    down.synced()
    assert_selected(up, down, PART)
    assert "/images" not in parts_here(down)


@pytest.mark.parametrize("requests", [2, 3])
def test_a_fetch_by_another_filter_is_cut(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, requests: int
) -> None:
    """A directory without its parts is here: the next sync does not start over."""
    up, down = pair
    up.many(b"images/deep", 300)
    up.commit()
    down.synced()
    up.put(b"images/deep/new", b"new")
    up.put(b"pool/b/new", b"new")
    up.commit()
    fetch, left = sparse_fetch.SparseFetch._fetch, iter(range(requests))

    def cut(self: sparse_fetch.SparseFetch, body: bytes) -> None:
        if next(left, None) is None:
            raise UpstreamDownError("cut")
        fetch(self, body)

    with monkeypatch.context() as patch:
        patch.setattr(sparse_fetch.SparseFetch, "_fetch", cut)
        plan = down.run("plan", down.name, "--filter", "+ /images/***", "--filter", "- *")
        assert plan.code == ExitCode.NETWORK
    monkeypatch.setattr(Repository, "start_over", None)
    down.synced()
    assert_selected(up, down, PART)
    Repository(down.repository, make=False).repack(0)
    assert len([*(down.repository / "objects" / "pack").glob("*.pack")]) == 1


def test_an_upstream_that_leaves_out_an_object(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is missed before anything is touched."""
    up, down = pair
    down.synced()
    up.put(b"pool/b/deep/new", b"new")
    up.commit()
    commit = bytes.fromhex(up.head.commit)
    with monkeypatch.context() as patch:
        patch.setattr(sparse_fetch, "request_objects", lambda _: wire.request_top(commit))
        ended = down.sync()
    assert ended.code == ExitCode.FORMAT, ended
    assert down.verify("--content").code == 0
    down.synced()
    assert_selected(up, down, PART)


def test_a_pack_is_lost(pair: Pair) -> None:
    """All is fetched again, and nothing taken for excluded directories."""
    up, down = pair
    down.configure(filter=("+ /images/***", "- *"))
    down.synced()
    down.configure(filter=PART)
    down.synced()
    for pack in (down.repository / "objects" / "pack").iterdir():
        pack.unlink()
    up.put(b"pool/b/new", b"new")
    up.commit()
    down.synced()
    assert_selected(up, down, PART)


def test_a_pack_is_lost_after_the_filter_was_dropped(pair: Pair) -> None:
    """Its directories are missed, not taken for excluded ones."""
    up, down = pair
    down.synced()
    down.configure(filter=())
    for name in (b"pool/b/new", b"pool/b/newer"):
        up.put(name, b"new")
        up.commit()
        down.synced()
    packs = (down.repository / "objects" / "pack").glob("*.pack")
    largest = max(packs, key=lambda pack: pack.stat().st_size)
    largest.unlink()
    largest.with_suffix(".idx").unlink()
    assert down.verify("--content").code == ExitCode.UNSOUND
    up.put(b"images/newest", b"new")
    up.commit()
    down.synced("--adopt")
    assert_equal(up, down)
    assert down.verify("--content").code == 0


def test_an_older_record_was_restored(pair: Pair) -> None:
    """Commits that it does not name are searched."""
    up, down = pair
    down.synced()
    record = down.repository / "sparse"
    older = record.read_bytes()
    for name in (b"pool/b/new", b"pool/b/newer"):
        up.put(name, b"new")
        up.commit()
        down.synced()
        record.write_bytes(older)
    rules = ("+ /images/***", *PART)
    down.configure(filter=rules)
    down.synced()
    assert_selected(up, down, rules)


# What a signature proves.

Signed = tuple[SignedUpstream, Downstream]


@pytest.fixture(name="signed")
def signed_mirror(place: Site, tmp_path: Path) -> Signed:
    up = place.upstream()
    up.many(b"pool/b", 300)
    up.many(b"images", 300)
    signed = SignedUpstream(up, tmp_path / "keys")
    signed.commit()
    return signed, place.downstream(up, filter=PART)


def test_an_upstream_that_does_not_tell_hashes(
    signed: Signed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their file is lost, or an older server knows no such address."""
    up, down = signed[0].up, signed[1]
    up.places.listing_hashes.rename(up.places.folder / "away")
    down.synced()
    assert_selected(up, down, PART)
    assert "/images" in parts_here(down)
    refresh(down.root / "modules")
    monkeypatch.setattr(sparse_fetch, "LISTING_HASHES", "nothing")
    down.synced("--adopt")
    assert "/images" in parts_here(down)


def test_a_relay_tells_hashes(signed: Signed, place: Site, tmp_path: Path) -> None:
    up = signed[0].up
    middle = place.downstream(up)
    middle.synced()
    with relaying(middle, tmp_path / "relay") as relay:
        until(lambda: relay.serial == 1)
        last = relay.downstream(filter=PART)
        last.synced()
        assert_selected(up, last, PART)
        assert "/images" not in parts_here(last)


def test_wrong_hashes_are_refused(signed: Signed, monkeypatch: pytest.MonkeyPatch) -> None:
    up, down = signed[0].up, signed[1]
    fetch = sparse_fetch.SparseFetch._fetch_hashes

    def lie(self: sparse_fetch.SparseFetch, trees: list[bytes]) -> bytes:
        record = bytearray(fetch(self, trees))
        record[OID_BYTES] ^= 1
        record[-4:] = crc32(record[:-4]).to_bytes(4, "big")
        return bytes(record)

    with monkeypatch.context() as patch:
        patch.setattr(sparse_fetch.SparseFetch, "_fetch_hashes", lie)
        assert down.sync().code == ExitCode.UNSIGNED
    assert not [*down.dest.iterdir()]
    signed[0].commit(b"new")
    down.synced()
    assert_selected(up, down, PART)
    assert "/images" not in parts_here(down)


def test_what_is_fetched_later_is_hashed(signed: Signed) -> None:
    """Its stated hash, and those of the trees that name it, are not believed any more."""
    up, down = signed[0].up, signed[1]
    down.synced()
    tree = up.repository.snapshot(up.head)[1].tree
    items = decode_tree(up.repository.read(tree, "tree"))
    [images] = [item.oid for item in items if item.name == b"=images"]
    cache = down.repository / LISTING_HASHES
    assert stored_hashes(cache, images) == b""
    down.configure(filter=())
    down.synced()
    assert stored_hashes(cache, images) == stored_hashes(up.places.listing_hashes, images) != b""


def test_static_files_are_fetched_as_a_whole(pair: Pair, tmp_path: Path) -> None:
    up, down = pair
    site = tmp_path / "site"
    (site / "git").mkdir(parents=True)
    (site / "git" / f"{up.name}.git").symlink_to(up.places.repository)
    with nginx(site) as web:
        down.configure(url=web.url)
        down.synced()
        assert_selected(up, down, PART)
        assert "/images" in parts_here(down)


def test_a_git_server_without_filters(pair: Pair) -> None:
    """Git's default: it refuses the request by an empty reply."""
    up, down = pair
    with git_backend(up.places.repository.parent) as address:
        down.configure(url=f"{address}/{up.places.repository.name}")
        down.synced()
    assert_selected(up, down, PART)
    assert "/images" in parts_here(down)
