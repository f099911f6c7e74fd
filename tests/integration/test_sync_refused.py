"""Refusals of a sync, each with its exit code, a hint, and nothing touched."""

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from huai_client.config import load as client_config
from huai_schema.codec.commits import CommitInfo
from tests.support.answering import QuietHandler, answering
from tests.support.listening import listening
from tests.support.local_trees import fingerprint
from tests.support.mounting import needs_mounts
from tests.support.rewriting import Rewriting
from tests.support.unprivileged import NOBODY, program_as_nobody
from tests.support.upstream import (
    ENVIRONMENT,
    SECONDS,
    Ended,
    Pair,
    Site,
    Upstream,
    assert_equal,
    refresh,
)
from tests.support.weak_network import Weakness, weak


@pytest.fixture(name="pair")
def committed_pair(place: Site) -> Pair:
    up = place.upstream()
    up.many(b"folder", 5)
    up.put(b"file", b"1")
    up.commit()
    return up, place.downstream(up)


def refused(ended: Ended, code: int, *words: str) -> None:
    """The run ended with `code`, said all of `words`, and what to do next."""
    assert ended.code == code, ended
    assert all(word in ended.err for word in words), ended.err
    assert len(ended.err.strip().splitlines()) >= 2, "no hint"


# ---------------------------------------------------------------- the upstream


def test_an_unknown_module(pair: Pair) -> None:
    _, down = pair
    refused(down.run("sync", "nonesuch"), 45, "nonesuch")
    down.configure(upstream_name="nonesuch")
    refused(down.sync(), 45, "no such module")
    assert list(down.dest.iterdir()) == []


def test_urls_that_lead_nowhere(pair: Pair) -> None:
    _, down = pair
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    for url, code, word in (
        (f"http://127.0.0.1:{port}", 10, "refused"),
        ("http://no-such-host.invalid", 10, "no-such-host.invalid"),
        ("http://[::1", 40, ""),
        ("http://a..b", 10, ""),
        ("/none", 10, ""),
    ):
        down.configure(url=url)
        refused(down.sync(), code, word)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\n"
ADVERT = b"001e# service=git-upload-pack\n0000"
FIRST = b"00a0" + b"0" * 40 + b" capabilities^{}\0"


@contextmanager
def saying(answer: bytes) -> Iterator[str]:
    """A server that gives one answer to everything, and hangs up."""

    def serve_client(connection: socket.socket) -> None:
        with connection:
            connection.recv(1 << 16)
            connection.sendall(answer)

    with listening(serve_client) as port:
        yield f"http://127.0.0.1:{port}"


HALF_ANSWERS = (
    b"",
    b"HTTP/1.1 2",
    b"nonsense\r\n\r\n",
    HEAD + b"\r\n",
    HEAD + b"Content-Length: 500\r\n\r\n" + ADVERT,
    HEAD + b"Content-Length: 500\r\n\r\n" + ADVERT + FIRST,
    HEAD + b"Transfer-Encoding: chunked\r\n\r\n20\r\n" + ADVERT,
    HEAD + b"\r\n001e# service=git-upload-pack\n0000zzzz",
    HEAD + b"\r\n001e# service=git-upload-pack\n00000001",
    b"HTTP/1.1 500 Oops\r\n\r\n",
)


def test_half_an_answer(pair: Pair) -> None:
    _, down = pair
    down.synced()
    for answer in HALF_ANSWERS:
        with saying(answer) as url:
            down.configure(url=url)
            refused(down.sync(), 10)


def test_half_a_pack(place: Site, pair: Pair) -> None:
    up, down = pair
    down.synced()
    up.many(b"more", 500, size=300)
    up.commit()
    with weak(place.url, Weakness(most=3000)) as bad:
        down.configure(url=f"http://{bad}")
        refused(down.sync(), 10)
    down.configure(url=place.url)
    down.synced()
    assert_equal(up, down)


class PlainPages(QuietHandler):
    """A web server that has a page for everything."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<html>Welcome</html>")


def test_a_plain_web_server(place: Site, pair: Pair) -> None:
    _, down = pair
    with answering(PlainPages) as url:
        for right in ("", place.url):
            if right:
                down.configure(url=right)
                down.synced()
            down.configure(url=url)
            refused(down.sync(), 45, "not a head of static files")


def test_the_repository_of_another_module(place: Site, pair: Pair) -> None:
    up, down = pair
    other = place.upstream()
    other.put(b"file", b"1")
    other.commit()
    down.configure(url=f"{place.url}/git/{other.name}.git")
    refused(down.sync(), 45, repr(other.name), repr(up.name), "upstream_name")
    assert list(down.dest.iterdir()) == []


def test_a_serial_that_went_back(pair: Pair) -> None:
    up, down = pair
    up.put(b"second", b"2")
    up.commit()
    down.synced()
    git = Rewriting(up.places.repository)
    git.point(git.resolve("main^"))
    state = down.state
    refused(down.sync(), 46, "serial 1", "2 was accepted", "--accept-rollback")
    assert (down.dest / "second").exists()
    assert down.state == state
    up.at(b"second").unlink()
    assert down.sync("--accept-rollback").code == 0
    assert down.state.serial == 1
    assert not (down.dest / "second").exists()
    assert down.verify("--content").code == 0


def test_another_commit_with_the_same_serial(pair: Pair) -> None:
    up, down = pair
    down.synced()
    git = Rewriting(up.places.repository)
    git.commit(git.resolve("main^{tree}"), git.message, when=1)
    refused(down.sync(), 46)


def test_an_upstream_that_was_purged_and_made_anew(pair: Pair) -> None:
    up, down = pair
    down.synced()
    accepted = down.state
    assert len(accepted.identity) == 32
    shutil.rmtree(up.places.repository)
    up.commit()
    up.put(b"second", b"2")
    up.commit()  # serial 2: no step back
    refused(down.sync(), 46, "was accepted", accepted.identity, "--accept-rollback")
    assert down.state == accepted
    assert not (down.dest / "second").exists()
    assert down.sync("--accept-rollback").code == 0
    assert down.state.identity not in ("", accepted.identity)
    up.put(b"third", b"3")
    up.commit()
    down.synced()
    # Who does not tell any more which module it is, is not believed either.
    name = up.name.encode()
    rewrite_descriptor(up, b"format\t1\nmodule\t" + name + b"\ndigest\tblake3\n")
    refused(down.sync(), 46, "its identity is missing")


def test_an_identity_that_was_never_told_is_learnt(pair: Pair) -> None:
    up, down = pair
    name = up.name.encode()
    rewrite_descriptor(up, b"format\t1\nmodule\t" + name + b"\ndigest\tblake3\n")
    down.configure(content_urls=(str(up.tree),))
    down.synced()
    assert down.state.identity == ""
    up.commit()  # by a server that knows of identities
    down.synced()
    assert len(down.state.identity) == 32


@contextmanager
def taken_back(up: Upstream) -> Iterator[None]:
    """Commits that are made within are gone afterwards."""
    git = Rewriting(up.places.repository)
    before = git.head
    yield
    git.point(before)


def rewrite_commit(up: Upstream, *, when: int = 1_700_000_000, **trailers: int | str) -> None:
    """A further commit of the same tree, with another date and other trailers."""
    git = Rewriting(up.places.repository)
    message = git.message
    serial = CommitInfo.decode(message).serial
    for key, value in {"Serial": serial + 1, **trailers}.items():
        message = re.sub(f"(?m)^Huai-{key}: .*$", f"Huai-{key}: {value}", message)
    serial_now = trailers.get("Serial", serial + 1)
    message = message.replace(f"{up.name} {serial}: ", f"{up.name} {serial_now}: ")
    git.commit(git.resolve("main^{tree}"), message, git.head, when=when)


def test_a_serial_that_leaps(place: Site, pair: Pair) -> None:
    up, synced = pair
    synced.synced()
    rewrite_commit(up, Serial=(1 << 63) - 1)
    for down in (synced, place.downstream(up)):
        before = down.state
        refused(down.sync(), 46, "jumps", "--accept-rollback")
        assert down.state.serial == before.serial
        assert down.sync("--accept-rollback").code == 0


def test_a_commit_with_an_impossible_date(pair: Pair) -> None:
    up, down = pair
    down.synced()
    before = down.state
    for when in (0, 1 << 38, 1 << 60, 1 << 62):
        with taken_back(up):
            rewrite_commit(up, when=when)
            refused(down.sync(), 44, "commit")
        assert down.state == before
        for command in (("log", down.name), ("status",)):
            assert down.run(*command).code == 0


def test_more_is_announced_than_was_agreed_to(pair: Pair) -> None:
    up, down = pair
    down.synced()
    before = down.state
    for trailer, value, words in (
        ("Files", 1 << 31, "max_entries"),
        ("Files", (1 << 63) - 1, "entries are announced"),
        ("Bytes", 1 << 60, "max_bytes"),
        ("Files", 200_000, "max_entries"),
    ):
        with taken_back(up):
            rewrite_commit(up, **{trailer: value})
            refused(down.sync(), 44, words)
        assert down.state == before


@pytest.mark.parametrize("trailer", [{"Files": 2_000_000}, {"Bytes": 1 << 41}])
def test_a_tree_that_grew_a_lot_is_adopted(pair: Pair, trailer: dict[str, int]) -> None:
    up, down = pair
    down.synced()
    down.configure(max_entries=2_000_005)
    before = down.state
    rewrite_commit(up, **trailer)
    refused(down.sync(), 44, "--adopt")
    assert down.state == before
    assert down.sync("--adopt").code == 0


def repeat_a_tree(up: Upstream, times: int) -> None:
    """A commit of one directory that is named `times` * `times` times."""
    git = Rewriting(up.places.repository)
    manifest = git.resolve("main:tree/=folder/m")
    folder = git.tree(m=manifest)
    for _ in range(2):
        folder = git.tree(m=manifest, **{f"={number}": folder for number in range(times)})
    git.commit(git.tree("main", tree=folder), git.message)
    rewrite_commit(up, Files=0, Directories=1 + times + times * times)


@pytest.fixture(name="repeating")
def committed_repetition(place: Site) -> Pair:
    up = place.upstream()
    up.many(b"folder/inner", 200)
    up.commit()
    repeat_a_tree(up, 2000)
    return up, place.downstream(up)


@needs_mounts
def test_one_directory_that_is_named_four_million_times(repeating: Pair, tmp_path: Path) -> None:
    _, down = repeating
    refused(down.sync(), 44, "4,002,001 entries", "bytes of metadata", "set max_entries")
    with small_disk(tmp_path, "nr_inodes=1k"):
        down.configure(dest=str(tmp_path), max_entries=5_000_000)
        refused(down.sync(), 49, "4,002,000 inodes are needed", "the tree was not changed")
        assert list(tmp_path.iterdir()) == []


@contextmanager
def small_disk(place: Path, options: str) -> Iterator[None]:
    """A file system in memory, mounted at `place`."""
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs"]
    subprocess.run([*mount, place], check=True, timeout=SECONDS)
    try:
        yield
    finally:
        subprocess.run(["umount", place], check=True, timeout=SECONDS)


@needs_mounts
@pytest.mark.parametrize("applied", [False, True])
def test_more_directories_and_symlinks_than_inodes(
    place: Site, tmp_path: Path, *, applied: bool
) -> None:
    up = place.upstream()
    up.put(b"file", b"1")
    up.commit()
    with small_disk(tmp_path, "nr_inodes=200"):
        down = place.downstream(up, tmp_path)
        if applied:
            down.synced()
        before = sorted(tmp_path.rglob("*"))
        for number in range(150):
            up.at(b"d%d" % number).mkdir()
            up.at(b"s%d" % number).symlink_to("file")
        up.commit()
        for words in ("inodes are needed", "300 inodes are needed"):
            refused(down.sync(), 49, words, "the tree was not changed")
            assert sorted(tmp_path.rglob("*")) == before
            for number in range(150, 300):
                up.at(b"d%d" % number).mkdir(exist_ok=True)
            up.commit()


def test_the_administrator_decides_how_much_is_too_much(pair: Pair) -> None:
    up, down = pair
    down.configure(max_entries=1)
    refused(down.sync(), 44, "announces 8 entries, more than max_entries = 1")
    refused(down.sync(), 44, "max_entries = 1", "refused before", "another configuration")
    assert list(down.dest.iterdir()) == []
    down.configure(max_entries=8)
    down.synced()
    up.many(b"d", 500)
    up.commit()
    down.configure(max_entries=1000)
    down.synced()  # a small tree may grow as it likes


def test_metadata_that_is_not_understood(pair: Pair) -> None:
    up, down = pair
    down.synced()
    before = down.state
    module = b"module\t" + up.name.encode() + b"\ndigest\tblake3\n"
    for descriptor, words in (
        (b"format\t2\n" + module, "format version 2 is unknown"),
        (b"format\t1\nMust\tunderstand\n" + module, "the key Must is required"),
        (b"format\t1\nmodule\t../x\ndigest\tblake3\n", "cannot be a module's name"),
        (b"format\t1\n" + module + b"content\t--rsh=sh\n", "content URL"),
        (b"", "too long, or truncated"),
    ):
        with taken_back(up):
            rewrite_descriptor(up, descriptor)
            refused(down.sync(), 44, words)
        assert down.state == before


def rewrite_descriptor(up: Upstream, descriptor: bytes) -> None:
    """A further commit, with this descriptor and the same tree."""
    git = Rewriting(up.places.repository)
    old = git.message
    number = int(old.partition("Huai-Serial: ")[2].partition("\n")[0])
    message = old.replace(f"Huai-Serial: {number}", f"Huai-Serial: {number + 1}")
    message = message.replace(f"{up.name} {number}: ", f"{up.name} {number + 1}: ")
    tree = git.tree("main", huai=git.write("blob", descriptor))
    git.commit(tree, message, git.head, when=1)


def test_content_urls_that_an_upstream_may_not_name(pair: Pair) -> None:
    up, down = pair
    text = f"format\t1\nmodule\t{up.name}\ndigest\tblake3\ncontent\t"
    for url in ("/etc/", "root@127.0.0.1:/etc", "127.0.0.1:etc", "https://u:p@h/x", "file:///etc"):
        rewrite_descriptor(up, f"{text}{url}\n".encode())
        refused(down.sync(), 40, "no content URL that may be used", "content_urls")
        assert not (down.dest / "file").exists()
    # The administrator's own choice is another matter.
    down.configure(content_urls=(str(up.tree),))
    down.synced()


def rewrite_manifest(up: Upstream, before: bytes, after: bytes) -> None:
    """A further commit, in which the manifest of the top directory says something else."""
    git = Rewriting(up.places.repository)
    old = git.read("main:tree/m")
    assert old.count(before) == 1
    inner = git.tree("main:tree", m=git.write("blob", old.replace(before, after)))
    git.commit(git.tree("main", tree=inner), git.message)
    rewrite_commit(up)


@pytest.mark.parametrize("options", [(), ("--adopt",), ("first",)])
def test_hardlinks_that_are_not_of_a_group(place: Site, options: tuple[str, ...]) -> None:
    up = place.upstream(digest="off")
    up.put(b"file", b"content")
    up.at(b"link").symlink_to("file")
    up.many(b"folder", 200)
    up.commit()
    down = place.downstream(up)
    if options != ("first",):
        down.synced()
    up.at(b"twin").hardlink_to(up.at(b"file"))
    up.put(b"more", b"1")
    up.commit()
    state, (_, *tree) = down.state, fingerprint(down.dest)
    for before, after, words in (
        (b"\thfile\n", b"\thabsent\n", "not the first file of a group: absent"),
        (b"\thfile\n", b"\thfolder\n", "not the first file of a group: folder"),
        (b"\thfile\n", b"\thlink\n", "not the first file of a group: link"),
        (b"twin\t7\t", b"twin\t8\t", "differs from its group: file"),
    ):
        with taken_back(up):
            rewrite_manifest(up, before, after)
            ended = down.sync(*(each for each in options if each != "first"))
            refused(ended, 44, "twin: ", words)
        assert (down.state, fingerprint(down.dest)[1:]) == (state, tree)


def test_a_commit_of_a_megabyte(pair: Pair) -> None:
    up, down = pair
    down.synced()
    rewrite_commit(up, Bytes="1\nFiller: " + "x" * (1 << 20))
    for verify in ("pin", "off"):
        down.configure(verify=verify)
        refused(down.sync(), 44, "a commit of more than 131072 bytes")


# ---------------------------------------------------------------- the destination


@pytest.mark.parametrize("path", [b"new", b"small/folder/file"])
def test_a_destination_that_is_not_mounted(place: Site, path: bytes) -> None:
    up = place.upstream()
    up.put(b"small/folder/file", b"1")
    down = place.synced_downstream(up)
    refresh(down.dest)
    up.put(path, b"2")
    up.commit()
    refused(down.sync(), 52, "holds nothing", "--adopt", "mounted")
    assert list(down.dest.iterdir()) == []
    assert down.sync("--adopt").code == 0
    assert_equal(up, down)


@needs_mounts
def test_a_destination_that_is_full(pair: Pair, tmp_path: Path) -> None:
    up, down = pair
    up.put(b"large", os.urandom(3 << 20))
    up.commit()
    with small_disk(tmp_path, "size=2m"):
        down.configure(dest=str(tmp_path))
        refused(down.sync(), 49, "are needed", "are free", "the tree was not changed")
        assert list(tmp_path.iterdir()) == []
        os.truncate(up.at(b"large"), 1 << 19)
        up.commit()
        (tmp_path / "filler").write_bytes(bytes(1 << 20))
        down.synced()
        assert down.verify("--content").code == 47  # for the filler


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_users_destination(place: Site, pair: Pair, short_path: Path) -> None:
    up, _ = pair
    short_path.chmod(0o755)
    root, dest = short_path / "client", short_path / "dest"
    root.mkdir()
    dest.mkdir()
    client_config.add_module(root, up.name, client_config.Module(url=place.url, dest=str(dest)))
    os.chown(root, NOBODY, NOBODY)
    (root / "client.toml").chmod(0o644)
    program = program_as_nobody("huai_client")
    done = subprocess.run(
        [sys.executable, "-c", program, "--root", root, "sync", up.name],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=SECONDS,
        check=False,
    )
    ended = Ended(done.returncode, done.stdout, done.stderr)
    refused(ended, 52, "belongs to root", "nobody")  # prose: a user
    assert list(dest.iterdir()) == []
    os.chown(dest, NOBODY, NOBODY)
    subprocess.run(done.args, env=ENVIRONMENT, timeout=SECONDS, check=True)
    assert (dest / "file").stat().st_uid == NOBODY


# ---------------------------------------------------------------- this machine


def test_rsync_is_missing(pair: Pair, tmp_path: Path) -> None:
    _, down = pair
    (tmp_path / "git").symlink_to(shutil.which("git") or "git")
    ended = down.process("sync", down.name, environment={"PATH": str(tmp_path)})
    refused(ended, 51, "rsync cannot be started", "install rsync 3.1")


def test_a_damaged_state_file(pair: Pair) -> None:
    up, down = pair
    down.state_file.parent.mkdir(parents=True)
    down.state_file.write_text("{")
    for command in ("sync", "plan"):
        refused(down.run(command, down.name), 11, "state.json", "move it away")
    assert not down.repository.exists()
    down.state_file.unlink()
    down.synced()
    for text in ("", "{", "[]", '{"version": 2}', '{"version": 1, "attempted": "abc"}', "\xff"):
        down.state_file.write_text(text, encoding="latin-1")
        for command in ("sync", "plan", "verify", "status"):
            refused(down.run(command, down.name), 11, "state.json", "move it away")
    down.state_file.rename(down.root / "state.old")
    down.synced()
    assert_equal(up, down)


def test_a_state_root_that_cannot_be_written(pair: Pair) -> None:
    _, down = pair
    (down.root / "modules").write_text("not a folder")
    refused(down.sync(), 11, "modules", "--root")


def test_errors_as_json(pair: Pair) -> None:
    _, down = pair
    down.dest.rmdir()
    ended = down.sync("--json")
    error = ended.events("error")[0]
    assert (error["code"], error["name"]) == (52, "DESTINATION")
    assert error["message"] in ended.err
    assert error["hint"] in ended.err
