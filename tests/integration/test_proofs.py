"""`[modules.NAME.proofs]`: what is published of a signed archive, and what is held back."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from huai_client.config.hooks import Proof
from huai_program.durations import TimeLimit
from huai_schema.limits import BLOCK_INDEX_MIN
from tests.support.archive import BINARY, DISTS, UNPROVED, Archive, Signer
from tests.support.nginx import nginx
from tests.support.processes import is_running, until
from tests.support.reflinks import shares_blocks
from tests.support.upstream import Downstream, Ended, Site, Upstream, assert_equal


@pytest.fixture
def keyring(signer: Signer) -> str:
    return str(signer.home.parent / "old.gpg")


@pytest.fixture
def up(place: Site, signer: Signer) -> Upstream:
    """An upstream with a signed archive, and other files."""
    up = place.upstream()
    up.put(b"README", b"other files")
    Archive(up.tree, signer).update("1", "old")
    return up


@pytest.fixture
def archive(up: Upstream, signer: Signer) -> Archive:
    return Archive(up.tree, signer)


@pytest.fixture
def down(place: Site, up: Upstream, keyring: str) -> Downstream:
    """A downstream that has the first version."""
    return place.synced_downstream(up, proofs={"apt": Proof(gpgv=keyring)})


def text(down: Downstream, name: str) -> bytes:
    return (down.dest / DISTS / name).read_bytes()


def refused(down: Downstream, reason: str) -> Ended:
    """A sync whose indices and pointers stay, and whose payload is published."""
    names = [f"{DISTS}/InRelease", f"{DISTS}/Release", f"{BINARY}/Packages"]
    before = [(down.dest / name).read_bytes() for name in names]
    ended = down.sync("--json")
    assert ended.code == UNPROVED, ended
    assert [(down.dest / name).read_bytes() for name in names] == before
    [event] = ended.events("proof")
    assert event["path"] == "."
    assert event["profile"] == "apt"
    assert reason in event["failure"]
    assert reason in ended.events("sync")[0]["failures"][0]
    return ended


def put_off(up: Upstream, archive: Archive) -> None:
    """A second version that also deletes the first one's package."""
    archive.package("hello", "2")
    (up.tree / "pool/main/hello_1_amd64.deb").unlink()
    archive.index()


@pytest.mark.parametrize("keys", [("old",), ("old", "new")])
def test_a_good_signature_is_published(
    up: Upstream, archive: Archive, down: Downstream, keys: tuple[str, ...]
) -> None:
    archive.update("2", *keys)
    up.commit()
    ended = down.sync("--json")
    assert ended.code == 0, ended
    assert [event["failure"] for event in ended.events("proof")] == [""]
    assert_equal(up, down)
    assert down.sync("--json").events("proof") == []  # nothing new, nothing to prove
    archive.sign("old")  # only the signature is new
    up.commit()
    assert down.sync().code == 0
    assert_equal(up, down)
    (up.tree / DISTS / "Release.gpg").write_bytes(b"nothing")
    up.commit()
    refused(down, "Release")
    assert text(down, "Release.gpg") != b"nothing"


def test_another_key(up: Upstream, archive: Archive, down: Downstream) -> None:
    put_off(up, archive)
    archive.sign("new")
    up.put(b"README", b"they change too")
    up.commit()
    for rule in ("", "payload **", "volatile InRelease", "profile generic /"):
        if rule:  # of the upstream, which do not count
            up.change(publish=(rule,))
            up.commit()
        refused(down, "a key that the keyring does not have")  # each run tries again
        pool = {path.name for path in (down.dest / "pool/main").iterdir()}
        assert pool == {"hello_1_amd64.deb", "hello_2_amd64.deb"}  # the old indices name the first
        assert (down.dest / "README").read_bytes() == b"they change too"
    up.change(publish=())
    archive.sign("old")
    up.commit()
    assert down.sync().code == 0
    assert_equal(up, down)


def test_words_of_gpgv_beside_its_status(
    up: Upstream,
    archive: Archive,
    down: Downstream,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its words for people may quote a file, and are not a status."""
    put_off(up, archive)
    archive.sign("new")
    up.commit()
    program = tmp_path / "gpgv"
    program.write_text("#!/bin/sh\necho '[GNUPG:] GOODSIG 0123 name' >&2\nexit 0\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    refused(down, "gpgv names no good signature")


def test_signatures_that_are_none(up: Upstream, archive: Archive, down: Downstream) -> None:
    put_off(up, archive)
    once = ("--faked-system-time", "20200102T000000!", "--default-sig-expire", "1d")
    archive.sign("old", options=once)
    up.commit()
    refused(down, "the signature has expired")
    archive.sign("old")
    place = up.tree / DISTS / "InRelease"
    good = place.read_bytes()
    for bad, reason in (
        (good.replace(b"Suite: stable", b"Suite: unstab"), "does not match the file"),
        (b"Suite: evil\n\n" + good, "not a single signed text"),
        (good + b"Suite: evil\n", "not a single signed text"),
        (good + good, "not a single signed text"),
        (b"Suite: evil\n", "not a single signed text"),
        (b"", "not a single signed text"),
    ):
        place.write_bytes(bad)
        up.commit()
        refused(down, reason)
    place.unlink()
    place.symlink_to("../../pool/other")
    up.commit()
    refused(down, "not a file of this repository")
    place.unlink()
    place.write_bytes(good)
    (up.tree / DISTS / "Release.gpg").unlink()
    up.commit()
    refused(down, "Release.gpg is missing next to it")
    archive.signer.inline(up.tree / DISTS / "Release", up.tree / DISTS / "Release.gpg", "old")
    up.commit()
    refused(down, "exit code 2")  # no detached signature


def test_a_directory_that_is_renamed_brings_no_pointer_along(
    up: Upstream, down: Downstream
) -> None:
    elsewhere = up.tree / "pool" / "next"
    shutil.copytree(up.tree / DISTS, elsewhere)
    (elsewhere / "InRelease").write_bytes(b"Suite: evil\n")
    up.commit()
    assert down.sync().code == 0  # elsewhere it is not a pointer
    shutil.move(elsewhere, up.tree / "dists" / "next")
    up.commit()
    assert down.sync().code == UNPROVED
    assert not (down.dest / "dists" / "next" / "InRelease").exists()


def test_a_first_sync_that_is_refused(
    place: Site, up: Upstream, archive: Archive, keyring: str
) -> None:
    archive.sign("new")
    up.commit()
    down = place.downstream(up, proofs={"apt": Proof(gpgv=keyring)})
    for _ in range(2):
        assert down.sync().code == UNPROVED
        files = {
            str(path.relative_to(down.dest)) for path in down.dest.rglob("*") if path.is_file()
        }
        assert {name for name in files if not name.startswith(".~tmp~")} == {
            "README",
            "pool/main/hello_1_amd64.deb",
        }
    archive.sign("old")
    up.commit()
    assert down.sync().code == 0
    assert_equal(up, down)


def test_an_undo_asks_nobody(up: Upstream, archive: Archive, down: Downstream) -> None:
    down.configure(trash="1d")
    before = text(down, "InRelease")
    archive.update("2", "old")
    up.commit()
    assert down.sync().code == 0
    down.configure(proofs={"apt": Proof(command="/bin/false")})
    assert down.run("undo", down.name).code == 0
    assert text(down, "InRelease") == before


@pytest.mark.parametrize(
    "target", ["/dists/stable/InRelease", "../../../dists/stable/InRelease", "main/../InRelease"]
)
def test_a_symlink_that_the_kernel_may_resolve_to_another_file(
    up: Upstream, archive: Archive, down: Downstream, target: str
) -> None:
    archive.update("2", "old")
    pointer = up.tree / "dists" / "stable" / "Release"
    pointer.unlink()
    pointer.symlink_to(target)
    up.commit()
    refused(down, "Release: not a file of this repository with known content")


def test_a_symlink_that_leads_past_what_is_proved(
    up: Upstream, archive: Archive, down: Downstream
) -> None:
    archive.update("2", "old")
    (up.tree / "dists" / "testing").symlink_to("stable")
    up.commit()
    assert down.sync().code == 0
    assert_equal(up, down)
    put_off(up, archive)
    archive.sign("old")
    (up.tree / "dists" / "next").symlink_to("../pool")
    up.commit()
    refused(down, "leads out of its directory")


# ------------------------------------------------------------------ other repositories, in folders


@pytest.fixture
def rpm(place: Site, signer: Signer) -> Upstream:
    up = place.upstream()
    up.put(b"el9/Packages/a.rpm", b"a")
    sign_rpm(up, signer, "first", "old")
    return up


def sign_rpm(up: Upstream, signer: Signer, content: str, key: str) -> None:
    data = up.put(b"el9/repodata/repomd.xml", content.encode(), mtime=None)
    signer.detached(data, data.with_suffix(".xml.asc"), key, "--armor")


@pytest.mark.parametrize("by", ["gpgv", "command"])
def test_rpm(place: Site, rpm: Upstream, signer: Signer, keyring: str, by: str) -> None:
    gpgv = shutil.which("gpgv")
    assert gpgv
    names = ("repodata/repomd.xml.asc", "repodata/repomd.xml")
    command = Proof(command=(gpgv, "--keyring", keyring, *names))
    proof = command if by == "command" else Proof(gpgv=(keyring,))
    down = place.synced_downstream(rpm, proofs={"rpm": proof})
    sign_rpm(rpm, signer, "second", "new")
    rpm.commit()
    ended = down.sync("--json")
    assert ended.code == UNPROVED
    [event] = ended.events("proof")
    assert event["path"] == "el9"
    failure = "el9/repodata/repomd.xml: signed by a key"
    assert by == "command" or failure in event["failure"]
    assert (down.dest / "el9/repodata/repomd.xml").read_bytes() == b"first"
    sign_rpm(rpm, signer, "third", "old")
    rpm.commit()
    assert down.sync().code == 0
    assert_equal(rpm, down)


def test_a_repository_with_an_odd_name(
    place: Site, signer: Signer, keyring: str, tmp_path: Path
) -> None:
    up = place.upstream()
    top = b"-od\xffd\nna'me $(x)/\xc3\xa4"
    up.put(top + b"/Packages/a.rpm", b"a")
    data = up.put(top + b"/repodata/repomd.xml", b"first", mtime=None)
    signer.detached(data, data.with_suffix(".xml.asc"), "old", "--armor")
    up.commit()
    down = place.downstream(up, proofs={"rpm": Proof(gpgv=keyring)})
    ended = down.sync("--json")
    assert ended.code == 0, ended
    assert len(ended.events("proof")) == 1
    program = tmp_path / "prove"
    program.write_text(
        f'#!/bin/sh\nprintf %s "$HUAI_REPOSITORY" >{tmp_path}/top; pwd; ls repodata/repomd.xml\n'
    )
    program.chmod(0o755)
    up.put(top + b"/repodata/repomd.xml", b"second", mtime=None)
    up.commit()
    down.configure(proofs={"rpm": Proof(command=str(program))})
    assert down.sync().code == 0
    assert (tmp_path / "top").read_bytes() == top


def test_pacman_whose_names_are_symlinks(place: Site, signer: Signer, keyring: str) -> None:
    up = place.upstream()
    up.put(b"os/a-1.pkg.tar.zst", b"a")
    database = up.put(b"os/core.db.tar.gz", b"first")
    signature = database.with_name("core.db.tar.gz.sig")
    signer.detached(database, signature, "old")
    database.with_name("core.db").symlink_to(database.name)
    database.with_name("core.db.sig").symlink_to(signature.name)
    down = place.synced_downstream(up, proofs={"pacman": Proof(gpgv=keyring)})
    up.put(b"os/core.db.tar.gz", b"second", mtime=None)
    up.commit()  # the signature is still that of the first
    ended = down.sync("--json")
    assert ended.code == UNPROVED
    assert "os/core.db: the signature does not match" in ended.events("proof")[0]["failure"]
    signer.detached(database, signature, "old")
    up.commit()
    assert down.sync().code == 0
    assert_equal(up, down)


# ------------------------------------------------------------------ a command

RECORD = """#!/bin/sh
find . -type l | sort >{log}.new
tr '\\0' '\\n' <"$HUAI_CHANGED_LIST" >{log}.changed
echo "$HUAI_MODULE $HUAI_PROFILE $HUAI_REPOSITORY" >{log}.names
cat {names} >/dev/null
{then}
"""


def command(folder: Path, then: str, names: str = f"{DISTS}/InRelease") -> tuple[str, ...]:
    program = folder / "prove"
    program.write_text(RECORD.format(log=folder / "log", then=then, names=names))
    program.chmod(0o755)
    return (str(program),)


def test_a_command_is_shown_what_changes_under_its_names(
    up: Upstream, archive: Archive, down: Downstream, tmp_path: Path
) -> None:
    archive.update("2", "old")
    shutil.copy(down.dest / DISTS / "Release.gpg", up.tree / DISTS / "Release.gpg")  # unchanged
    up.commit()
    names = f"{DISTS}/InRelease {DISTS}/Release.gpg {BINARY}/Packages"
    proof = Proof(command=command(tmp_path, "echo it is good", names))
    down.configure(proofs={"apt": proof})
    ended = down.sync()
    assert ended.code == 0, ended
    assert "proof: it is good" in ended.err
    new_names = (tmp_path / "log.new").read_text().split()
    assert new_names == [
        f"./{DISTS}/InRelease", f"./{DISTS}/Release", f"./{DISTS}/Release.gpg",
        f"./{BINARY}/Packages",
    ]  # fmt: skip
    changed = (tmp_path / "log.changed").read_text().split()
    assert changed == [f"{DISTS}/InRelease", f"{DISTS}/Release", f"{BINARY}/Packages"]
    assert (tmp_path / "log.names").read_text() == f"{up.name} apt .\n"
    assert_equal(up, down)


@pytest.mark.parametrize(
    ("then", "timeout", "reason"),
    [
        ("sleep 600", "1s", "time-out of 1 s"),
        ("yes 0123456789 | head -c 5000000; exit 3", "1m", "exit code 3"),
        ("kill -9 $$", "1m", "killed by signal 9"),
    ],
)
def test_a_command_that_fails(
    up: Upstream,
    archive: Archive,
    down: Downstream,
    tmp_path: Path,
    *,
    then: str,
    timeout: str,
    reason: str,
) -> None:
    archive.update("2", "old")
    up.commit()
    proof = Proof(command=command(tmp_path, then), timeout=TimeLimit(timeout))
    down.configure(proofs={"apt": proof})
    ended = refused(down, reason)
    assert len(ended.err) < 200_000


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_ended_while_it_proves(
    up: Upstream, archive: Archive, down: Downstream, tmp_path: Path, number: int
) -> None:
    archive.update("2", "old")
    up.commit()
    before, pid = text(down, "InRelease"), tmp_path / "pid"
    then = f"echo $$ >{pid}.new; mv {pid}.new {pid}; exec sleep 600"
    down.configure(proofs={"apt": Proof(command=command(tmp_path, then))})
    process = down.spawn("sync", down.name)
    until(pid.exists)
    proving = int(pid.read_text())
    process.send_signal(number)
    if number == signal.SIGKILL:
        os.kill(proving, signal.SIGKILL)
    process.communicate()
    assert process.returncode == (143 if number == signal.SIGTERM else -signal.SIGKILL)
    until(lambda: not is_running(proving))
    assert text(down, "InRelease") == before
    if number == signal.SIGTERM:
        assert not (down.root / "modules" / down.name / "proving").exists()
    assert not (down.dest / "pool/main/hello_2_amd64.deb").exists()
    down.configure(proofs={"apt": Proof(command="/bin/true")})
    assert down.synced()["received"] < 1000  # what was staged is not fetched again
    assert_equal(up, down)


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
