"""Checking a repository: a sound one passes, and every kind of damage is found and reported."""

import os
import shutil
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from huai_schema.codec.commits import CommitInfo
from huai_schema.codec.descriptor import Descriptor
from huai_schema.errors import HuaiError
from huai_server.store.check import CheckReport, check_repository
from tests.support.committing import ENVIRONMENT, SECONDS, Upstream, git


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    upstream = Upstream(tmp_path)
    upstream.write("a", "content")
    os.link(upstream.tree / "a", upstream.tree / "b")
    for number in range(500):
        upstream.write(f"d{number % 2}/f{number}", str(number))
    upstream.commit()
    upstream.write("later", "more")
    upstream.commit()
    return upstream


def test_a_sound_one(upstream: Upstream) -> None:
    report = upstream.check()
    assert report == CheckReport(2, report.objects, 2 + 500 + 1 + 3, ())
    count = upstream.git("rev-list", "--objects", "--no-object-names", "main").split()
    assert report.objects == len(count) - report.commits


def test_the_wrong_module(upstream: Upstream) -> None:
    faults = check_repository("other", upstream.repository).faults
    assert any("'m'" in fault for fault in faults)


def loosened(upstream: Upstream) -> None:
    """Make all objects loose, so that single ones can be damaged."""
    packs = upstream.root / "packs"
    upstream.repository.pack_folder.rename(packs)
    upstream.repository.pack_folder.mkdir()
    for pack in packs.glob("*.pack"):
        git(upstream.places.repository, "unpack-objects", "-q", stdin=pack.read_bytes())
    shutil.rmtree(packs)


def loose(upstream: Upstream, revision: str) -> Path:
    oid = upstream.git("rev-parse", revision)
    return upstream.places.repository / "objects" / oid[:2] / oid[2:]


REVISIONS = [
    "main",
    "main^{tree}",
    "main:huai",
    "main:tree",
    "main:tree/m",
    "main:tree/d",
    "main:tree/=d0",
    "main~1",
    "main~1^{tree}",
    "main~1:tree",
]


def vanish(path: Path) -> None:
    path.unlink()


def flip(path: Path) -> None:
    path.chmod(0o644)
    data = bytearray(zlib.decompress(path.read_bytes()))
    data[-1] ^= 1
    path.write_bytes(zlib.compress(data))


def cut(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-3])


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("damage", [vanish, flip, cut])
def test_any_damaged_object(
    upstream: Upstream, revision: str, damage: Callable[[Path], None]
) -> None:
    loosened(upstream)
    upstream.prove_sound()
    damage(loose(upstream, revision))
    assert upstream.check().faults


def judgement(upstream: Upstream) -> tuple[str, ...]:
    """Return the faults, or the error that ended the check."""
    try:
        return upstream.check().faults
    except HuaiError as error:
        return (error.message,) if error.exit_code == 50 else ()


def test_every_byte_of_a_pack_matters(upstream: Upstream) -> None:
    pack = max(upstream.repository.pack_folder.glob("*.pack"), key=lambda path: path.stat().st_size)
    pack.chmod(0o644)
    good = pack.read_bytes()
    for place in range(12, len(good) - 20, max(1, len(good) // 60)):
        pack.write_bytes(good[:place] + bytes((good[place] ^ 0x10,)) + good[place + 1 :])
        assert judgement(upstream), place
    pack.write_bytes(good)
    upstream.prove_sound()


@pytest.mark.parametrize(
    "content", [b"", b"nonsense\n", b"ref: refs/heads/other\n", b"1" * 40 + b"\n", b"\0" * 41]
)
def test_a_ref_that_points_to_nonsense(upstream: Upstream, content: bytes) -> None:
    (upstream.places.repository / "refs/heads/main").write_bytes(content)
    assert upstream.check().faults
    with pytest.raises(HuaiError) as caught:
        upstream.commit()
    assert caught.value.exit_code == 50


def test_a_ref_that_points_to_no_commit(upstream: Upstream) -> None:
    blob = upstream.git("rev-parse", "main:huai")
    (upstream.places.repository / "refs/heads/main").write_text(blob + "\n")
    assert upstream.check().faults


@pytest.mark.parametrize("part", ["HEAD", "objects", "refs", ""])
def test_what_is_no_repository_any_more(upstream: Upstream, part: str) -> None:
    path = upstream.places.repository / part
    path.unlink() if path.is_file() else shutil.rmtree(path)
    with pytest.raises(HuaiError) as caught:
        upstream.check()
    assert caught.value.exit_code == 50
    assert caught.value.hint


def test_a_repository_further_up_is_never_taken_for_it(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    upstream = Upstream(tmp_path)
    upstream.write("f")
    upstream.commit()
    (upstream.places.repository / "HEAD").unlink()
    for action in (upstream.commit, upstream.check):
        with pytest.raises(HuaiError) as caught:
            action()
        assert caught.value.exit_code == 50
    assert git(tmp_path, "for-each-ref") == ""


def recommit(upstream: Upstream, info: CommitInfo, tree: str, *parents: str) -> None:
    """Put a commit with any message on the branch."""
    arguments = [each for parent in parents for each in ("-p", parent)]
    done = subprocess.run(
        ["git", "-C", upstream.places.repository, "commit-tree", tree, *arguments],
        input=info.encode().encode(),
        capture_output=True,
        env={
            **ENVIRONMENT,
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@b",
            "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@b",
        },
        timeout=SECONDS,
        check=True,
    )
    upstream.git("update-ref", "refs/heads/main", done.stdout.decode().strip())


def test_trailers_that_do_not_add_up(upstream: Upstream) -> None:
    info, tree = upstream.head.info, upstream.git("rev-parse", "main^{tree}")
    wrong = info._replace(totals=info.totals._replace(bytes=1), serial=3)
    recommit(upstream, wrong, tree, "main")
    (fault,) = upstream.check().faults
    assert "trailers" in fault


@pytest.mark.parametrize("serial", [1, 2])
def test_a_serial_that_does_not_grow(upstream: Upstream, serial: int) -> None:
    info, tree = upstream.head.info, upstream.git("rev-parse", "main^{tree}")
    recommit(upstream, info._replace(serial=serial), tree, "main")
    (fault,) = upstream.check().faults
    assert "serial" in fault


def test_a_commit_of_another_module(upstream: Upstream) -> None:
    info, tree = upstream.head.info, upstream.git("rev-parse", "main^{tree}")
    recommit(upstream, info._replace(module="x", serial=3), tree, "main")
    (fault,) = upstream.check().faults
    assert "'x'" in fault


def test_a_message_of_no_huai(upstream: Upstream) -> None:
    upstream.git("update-ref", "refs/heads/main", upstream.git("rev-parse", "main~1"))
    tree = upstream.git("rev-parse", "main^{tree}")
    environment = ["-c", "user.name=a", "-c", "user.email=a@b"]
    oid = upstream.git(*environment, "commit-tree", tree, "-m", "hello")
    upstream.git("update-ref", "refs/heads/main", oid)
    (fault,) = upstream.check().faults
    assert oid in fault


def replaced(upstream: Upstream, path: str, content: bytes) -> str:
    """Return the id of the newest commit's tree with another blob at `path`."""
    *folders, name = path.split("/")
    kind = "blob"
    oid = git(upstream.places.repository, "hash-object", "-w", "--stdin", stdin=content)
    while True:
        above = "main:" + "/".join(folders)
        lines = upstream.git("ls-tree", above).splitlines()
        mode = "100644" if kind == "blob" else "040000"
        lines = [line for line in lines if not line.endswith("\t" + name)]
        lines.append(f"{mode} {kind} {oid}\t{name}")
        oid = git(upstream.places.repository, "mktree", stdin="\n".join(lines).encode() + b"\n")
        if not folders:
            return oid
        name, kind = folders.pop(), "tree"


def test_a_layout_that_is_not_canonical(upstream: Upstream) -> None:
    """Put the entries of a small directory, which should be inlined, into a tree."""
    info = upstream.head.info
    tree = upstream.git("rev-parse", "main:tree")
    manifest = upstream.git("rev-parse", "main:tree/m")
    raw = upstream.git("cat-file", "blob", manifest).encode() + b"\n"
    assert raw.startswith(b"./\t")
    inner = git(upstream.places.repository, "hash-object", "-w", "--stdin", stdin=b"./\t0\n")
    child = git(upstream.places.repository, "mktree", stdin=f"100644 blob {inner}\tm\n".encode())
    lines = [*upstream.git("ls-tree", tree).splitlines(), f"040000 tree {child}\t=tiny"]
    root = git(upstream.places.repository, "mktree", stdin="\n".join(lines).encode() + b"\n")
    top = upstream.git("ls-tree", "main").splitlines()
    top = [line for line in top if not line.endswith("\ttree")] + [f"040000 tree {root}\ttree"]
    commit = git(upstream.places.repository, "mktree", stdin="\n".join(top).encode() + b"\n")
    totals = info.totals._replace(directories=info.totals.directories + 1)
    recommit(upstream, info._replace(totals=totals, serial=3), commit, "main")
    (fault,) = upstream.check().faults
    assert "canonical" in fault


@pytest.mark.parametrize("leader", [b"nowhere", b"d0", b"later", b"f"])
def test_a_hardlink_to_nothing(upstream: Upstream, leader: bytes) -> None:
    raw = upstream.git("cat-file", "blob", "main:tree/m").encode() + b"\n"
    assert b"\tha\n" in raw
    tree = replaced(upstream, "tree/m", raw.replace(b"\tha\n", b"\th" + leader + b"\n"))
    recommit(upstream, upstream.head.info._replace(serial=3), tree, "main")
    assert upstream.check().faults


def test_a_line_that_cannot_be(upstream: Upstream) -> None:
    raw = upstream.git("cat-file", "blob", "main:tree/m").encode() + b"\n"
    tree = replaced(upstream, "tree/m", raw.replace(b"later\t", b"..\t"))
    recommit(upstream, upstream.head.info._replace(serial=3), tree, "main")
    assert upstream.check().faults


def test_a_descriptor_of_another_module(upstream: Upstream) -> None:
    tree = replaced(upstream, "huai", Descriptor("other").encode())
    recommit(upstream, upstream.head.info._replace(serial=3), tree, "main")
    (fault,) = upstream.check().faults
    assert "'other'" in fault


def test_damage_in_an_old_commit_does_not_hide_the_rest(upstream: Upstream) -> None:
    loosened(upstream)
    info = upstream.head.info
    wrong = info._replace(totals=info.totals._replace(files=0), serial=3)
    recommit(upstream, wrong, upstream.git("rev-parse", "main^{tree}"), "main")
    vanish(loose(upstream, "main~2:tree"))
    report = upstream.check()
    assert report.commits == 3
    assert len(report.faults) == 2


def test_a_damaged_past_stops_a_commit_with_a_clear_word(upstream: Upstream) -> None:
    loosened(upstream)
    vanish(loose(upstream, "main:tree"))
    upstream.write("newest")
    with pytest.raises(HuaiError) as caught:
        upstream.commit()
    assert caught.value.exit_code == 50
    assert "huai-server check m" in caught.value.hint
