"""Upstreams listed by text: of rclone, mtree, or lines of JSON, printed or on a web server.

Packages: rclone, mtree-netbsd, and libarchive-tools for bsdtar.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from huai_client.config import load as client_config
from huai_native._native import Blake3
from huai_schema.errors import ExitCode
from tests.integration.test_plain_upstream import CHANGES, fill
from tests.support.local_trees import fingerprint
from tests.support.nginx import nginx
from tests.support.plain_upstream import NOTHING, Plain, differences
from tests.support.ports import logging_server
from tests.support.upstream import ENVIRONMENT, T0, Downstream, Upstream, rsync_would
from tests.support.verifying import spoil

RCLONE = "/usr/bin/rclone"
LSJSON = (RCLONE, "lsjson", "--recursive", "--config=/dev/null")
FRESH = ("--dir-cache-time=0s",)
SECOND = 10**9


class Place:
    """A tree, and downstreams of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.up = Plain("m", folder / "tree", NOTHING)
        self.up.tree.mkdir()
        for name in (b"pool", b"pool/a", b"dists"):
            self.up.many(name, 5)

    def downstream(self, command: tuple[str, ...], **settings: Any) -> Downstream:
        """A downstream that has nothing yet, and gets content from the tree itself."""
        dest, root = self.folder / "dest", self.folder / "client"
        dest.mkdir()
        root.mkdir()
        values = {"url": str(self.up.tree), "dest": str(dest), "list_command": command}
        module = client_config.Module(**{**values, "list_every": 0, "timeout": 20, **settings})
        client_config.add_module(root, "m", module)
        return Downstream("m", dest, root)

    @property
    def printed(self) -> Path:
        """A file with the list that `cat` prints."""
        return self.folder / "list"

    def printing(self, **settings: Any) -> Downstream:
        """A downstream whose program prints a file."""
        self.print_lines()
        return self.downstream(("/bin/cat", str(self.printed)), **settings)

    def print_lines(self) -> None:
        """Print all of the tree as JSON."""
        self.printed.write_text(self.lines())

    def print_mtree(self) -> None:
        """Print all of the tree as a specification of mtree."""
        keywords = "type,size,time,mode,link"
        mtree = ("/usr/bin/mtree", "-c", "-p", str(self.up.tree), "-k", keywords)
        self.printed.write_bytes(subprocess.check_output(mtree))

    def lines(self) -> str:
        """All that a line can say of the tree."""
        entries = [self.entry(path) for path in sorted(self.up.tree.rglob("*"))]
        return "".join(json.dumps(entry) + "\n" for entry in entries)

    def entry(self, path: Path) -> dict[str, object]:
        """The line of an entry."""
        status = path.lstat()
        seconds, rest = divmod(status.st_mtime_ns, SECOND)
        entry: dict[str, object] = {
            "path": str(path.relative_to(self.up.tree)),
            "mtime": datetime.fromtimestamp(seconds, UTC).strftime(f"%FT%T.{rest:09}Z"),
        }
        if path.is_symlink():
            return {**entry, "type": "symlink", "target": str(path.readlink())}
        entry["mode"] = f"{status.st_mode & 0o7777:04o}"
        if path.is_dir():
            return {**entry, "type": "directory"}
        digest = Blake3(path.read_bytes()).digest().hex()
        return {**entry, "type": "file", "size": status.st_size, "digest": digest}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def change(up: Upstream) -> None:
    up.put(b"pool/new", b"new")
    up.put(b"new/deep/er/file", b"new")
    up.put(b"pool/0", b"longer than before")
    up.put(b"pool/1", b"abcdefghij", mtime=T0 + 7 * SECOND)
    up.at(b"pool/2").unlink()
    up.at(b"pool/3").rename(up.at(b'pool/\xc3\xbc "renamed"'))
    up.at(b"dists").rename(up.at(b"moved"))
    up.at(b"empty").mkdir()


def without_links(up: Upstream, down: Downstream) -> str:
    """Return what rsync would still change except hardlinks, which no such list states."""
    differences = rsync_would(up, down, "-anci", "--delete", "--no-D", "--exclude=.~tmp~")
    return differences.removeprefix(".d..t...... ./\n")  # no line names the top


def files(tree: Path) -> dict[str, tuple[bytes, int]]:
    """Content and time in seconds of all files, and the names of directories."""
    entries = {}
    for path in tree.rglob("*"):
        name = str(path.relative_to(tree))
        if not name.startswith(".~tmp~"):
            content = (b"", 0) if path.is_dir() else (path.read_bytes(), int(path.stat().st_mtime))
            entries[name] = content
    return entries


# rclone.


@contextmanager
def webdav(place: Place) -> Iterator[str]:
    """Serve the tree; yields the URL."""

    def command(port: int) -> tuple[str, ...]:
        return RCLONE, "serve", "webdav", str(place.up.tree), f"--addr=127.0.0.1:{port}", *FRESH

    with logging_server(command, place.folder / "log", ENVIRONMENT) as port:
        yield f"http://127.0.0.1:{port}"


def test_rclone_lists_a_folder(place: Place) -> None:
    down = place.downstream((*LSJSON, "--hash", str(place.up.tree)))
    ended = down.sync()
    assert ended.code == 0, ended
    assert "prove no content" in ended.err
    assert files(down.dest) == files(place.up.tree)
    change(place.up)
    local = down.dest / "pool/4"
    local.chmod(0o640)
    assert down.synced("--max-delete=100%")["serial"] == 2
    assert files(down.dest) == files(place.up.tree)
    assert local.stat().st_mode & 0o7777 == 0o640, "what a list does not state stays"
    assert down.verify("--content").code == 0
    commit = down.synced()["commit"]
    assert commit == down.synced()["commit"], "an equal list makes no commit"


def test_rclone_lists_a_web_server_that_has_the_content(place: Place) -> None:
    with webdav(place) as url:
        command = (*LSJSON, f"--webdav-url={url}", ":webdav:")
        down = place.downstream(command, url=url)
        down.synced()
        assert files(down.dest) == files(place.up.tree)
        change(place.up)
        down.synced("--max-delete=100%")
        assert files(down.dest) == files(place.up.tree)
        down.configure(content_urls=(str(place.up.tree),))
        place.up.put(b"pool/new", b"newer still")
        down.synced()
        assert files(down.dest) == files(place.up.tree)


# mtree.


def test_mtree_lists_a_folder(place: Place, subtests: pytest.Subtests) -> None:
    place.up.at(b"link").symlink_to("pool/a b")
    place.up.put(b"odd #\n\xff\\", b"1", mode=0o755)
    place.up.put(b"pool/\xc3\xbc", b"2", mode=0o600)
    tree = str(place.up.tree)
    keywords = "type,size,time,mode,link,sha256"
    commands = {
        "bsdtar": ("/usr/bin/bsdtar", "-cf", "-", "--format=mtree", "-C", tree, "."),
        "mtree": ("/usr/bin/mtree", "-c", "-p", tree, "-k", keywords),
    }
    down = place.downstream(commands["bsdtar"], modes="exact")
    for name, command in commands.items():
        with subtests.test(name):
            down.configure(list_command=command)
            down.synced("--max-delete=100%")
            assert differences(place.up, down) == ""
            serial = down.state.serial
            change(place.up)
            down.synced("--max-delete=100%")
            assert differences(place.up, down) == ""
            assert down.state.serial == serial + 1
            place.up.put(b"pool/2", b"again")
            place.up.put(b"pool/3", b"again")
            place.up.at(b"moved").rename(place.up.at(b"dists"))
            place.up.at(b"empty").rmdir()


@pytest.mark.parametrize("source", ["mtree", "lines"])
def test_each_change_arrives(place: Place, source: str, subtests: pytest.Subtests) -> None:
    """All but hardlinks, which neither list states."""
    down = place.printing(modes="exact", max_delete="100%")
    shutil.rmtree(place.up.tree)
    place.up.tree.mkdir()
    fill(place.up)
    for name, make in {"first copy": lambda _: None, **CHANGES}.items():
        make(place.up)
        place.print_mtree() if source == "mtree" else place.print_lines()
        down.synced()
        with subtests.test(name):
            assert without_links(place.up, down) == ""
    spoil(down, "pool/4")
    assert down.verify("--content").code == ExitCode.DIFFERS


@pytest.mark.parametrize("location", ["", "etag off;"])
def test_an_unchanged_list_on_a_web_server_costs_one_response_of_304(
    place: Place, location: str
) -> None:
    """By its ETag or, without one, by the date of its last change."""
    listing = place.printed

    def publish(second: int) -> None:
        place.print_mtree()
        os.utime(listing, ns=(T0, T0 + second * SECOND))

    publish(0)
    with nginx(place.folder, location=location) as web:
        down = place.downstream((), url=f"{web.url}/tree", list_url=f"{web.url}/list")

        def lists() -> list[str]:
            statuses = [line.split()[1] for line in web.requests if line.endswith("/list")]
            return statuses[before:]

        before = 0
        down.synced()
        assert files(down.dest) == files(place.up.tree)
        before = len(lists())
        down.synced()
        assert lists() == ["304"]
        change(place.up)
        publish(1)
        down.synced("--max-delete=100%")
        assert files(down.dest) == files(place.up.tree)
        assert lists()[1:3] == ["200", "200"], "asked, and read"
        assert set(lists()[3:]) <= {"304"}
        before += len(lists())
        down.synced()
        assert lists() == ["304"]
        listing.write_bytes(listing.read_bytes()[:-30])
        ended = down.sync()
        assert ended.code == ExitCode.FORMAT, ended
        assert "/list: the list is not complete" in ended.err
        listing.unlink()
        ended = down.sync()
        assert ended.code == ExitCode.NETWORK, ended
        assert "/list: the file is missing" in ended.err
        assert "is requested if it changed" in down.run("doctor", "m").out


# Lines.


def test_lines_may_state_all_that_a_commit_has(place: Place) -> None:
    place.up.at(b"link").symlink_to("pool/\udcff")
    place.up.put(b"odd\xff", b"1", mode=0o755)
    place.up.at(b"pool/a").chmod(0o711)
    down = place.printing(modes="exact")
    down.synced()
    place.up.at(b"pool/0").chmod(0o600)
    place.up.at(b"link").unlink()
    place.up.at(b"link").symlink_to("dists")
    place.printed.write_text(place.lines())
    assert down.synced()["received"] == 0
    os.utime(down.dest, ns=(T0, place.up.tree.stat().st_mtime_ns))  # no line names the top
    assert differences(place.up, down) == ""


def test_a_digest_proves_content(place: Place) -> None:
    down = place.printing()
    listed = place.lines()
    place.up.put(b"pool/0", b"changed...")
    assert place.lines() != listed
    assert down.sync().code == ExitCode.MISMATCH
    assert not (down.dest / "pool/0").exists()
    place.printed.write_text(place.lines())
    down.synced()
    assert files(down.dest) == files(place.up.tree)


def test_a_list_is_made_when_it_is_due(place: Place) -> None:
    down = place.printing(list_every="1h")
    down.synced()
    place.up.put(b"pool/new", b"1")
    place.printed.write_text(place.lines())
    down.synced()
    assert not (down.dest / "pool/new").exists()
    other = place.folder / "other"
    other.write_text(place.lines())
    down.configure(list_command=("/bin/cat", str(other)))
    down.synced()
    assert (down.dest / "pool/new").exists(), "another program is another list"


@pytest.mark.parametrize("source", ["mtree", "lines"])
def test_an_upstream_that_changes_under_its_list(place: Place, source: str) -> None:
    publish = place.print_mtree if source == "mtree" else place.print_lines
    down = place.printing(modes="exact", max_delete="100%")
    for name in (b"pool/0", b"pool/1", b"pool/2", b"new/file"):
        place.up.put(name, b"as listed", mtime=T0 + SECOND)
    place.up.at(b"dists").rename(place.up.at(b"moved"))
    publish()
    place.up.put(b"pool/0", b"newer than the list", mtime=T0 + 2 * SECOND)
    place.up.at(b"pool/1").unlink()
    place.up.put(b"pool/later", b"later")
    place.up.at(b"moved").rename(place.up.at(b"moved again"))
    ended = down.sync()
    assert ended.code in (ExitCode.VANISHED, ExitCode.MISMATCH), ended
    assert (down.dest / "pool/2").read_bytes() == (down.dest / "new/file").read_bytes()
    assert not (down.dest / "pool/later").exists()
    publish()
    down.synced()
    assert without_links(place.up, down) == ""
    assert down.verify("--content").code == 0


def test_lists_that_are_refused(place: Place, subtests: pytest.Subtests) -> None:
    down = place.printing(max_delete=5)
    down.synced()
    before = fingerprint(down.dest)
    right = place.lines()
    fails = "import os, sys; os.write(1, b'[\\n'); print('no bucket', file=sys.stderr); sys.exit(3)"
    python = (sys.executable, "-c")
    for output, command, code, words in (
        (right, (*python, fails), ExitCode.NETWORK, "exit code 3: no bucket"),
        (right, ("/bin/cat", "/nonexistent"), ExitCode.NETWORK, "exit code 1"),
        (right, (*python, "import time; time.sleep(99)"), ExitCode.NETWORK, "time-out of 1 s"),
        ("", None, ExitCode.FORMAT, "the list is empty"),
        ("[\n" + right, None, ExitCode.FORMAT, "no end"),
        (right[:-30], None, ExitCode.FORMAT, "line 18"),
        ("<html>", None, ExitCode.FORMAT, "not an object of JSON"),
        (right.replace("pool/4", "../4"), None, ExitCode.FORMAT, "unsafe path"),
        (right[: right.index('{"path": "pool/a"')], None, ExitCode.MAX_DELETE, "max_delete"),
        ('{"path": "other", "size": 1, "mtime": 1}', None, ExitCode.MAX_DELETE, "max_delete"),
    ):
        with subtests.test(words):
            place.printed.write_text(output)
            default = ("/bin/cat", str(place.printed))
            down.configure(list_command=command or default, timeout=1 if command else 20)
            ended = down.sync()
            assert ended.code == code, ended
            assert words in ended.err
            assert fingerprint(down.dest) == before
    place.printed.write_text(right)
    down.configure(list_command=("/bin/cat", str(place.printed)))
    down.synced()


def test_an_older_list_is_refused(place: Place, subtests: pytest.Subtests) -> None:
    """Twice, as the list is recorded; and one that only lacks the newest files is not older."""
    down = place.printing(list_every="1h", max_delete="100%")
    for name, publish in (("lines", place.print_lines), ("mtree", place.print_mtree)):
        with subtests.test(name):
            place.up.put(b"pool/0", b"first", mtime=T0)
            publish()
            older = place.printed.read_bytes()
            place.up.put(b"pool/0", b"second", mtime=T0 + SECOND)
            place.up.put(b"pool/new", b"1")
            publish()
            down.synced("--adopt")
            before, applied = fingerprint(down.dest), down.state.applied
            place.printed.write_bytes(older)
            for every in (0, "1h"):
                down.configure(list_every=every)
                ended = down.sync()
                assert ended.code == ExitCode.ROLLED_BACK, ended
                assert "the times of pool/0 and others are earlier" in ended.err
                assert fingerprint(down.dest) == before
                assert down.state.applied == applied
            place.up.put(b"pool/0", b"first", mtime=T0)
            place.up.at(b"pool/new").unlink()
            down.synced("--accept-rollback")
            assert files(down.dest) == files(place.up.tree)
            down.configure(list_every=0)
            place.up.at(b"pool/4").unlink(missing_ok=True)
            publish()
            down.synced()
            assert files(down.dest) == files(place.up.tree)


def test_settings_that_are_refused(place: Place, subtests: pytest.Subtests) -> None:
    down = place.printing()
    url = str(place.up.tree)
    for settings, words in (
        ({"list_command": ("cat",)}, "list_command: 'cat' is not an absolute path"),
        ({"list_url": "http://mirror.example/mtree"}, "list_url: list_command is set, too"),
        ({"list_command": (), "list_url": "/mtree"}, "list_url: /mtree is not the URL of a file"),
        ({"source": "rsync"}, "source: rsync over ssh lists HOST:PATH"),
        ({"probe": "TIME"}, "probe is for rsync daemons"),
        ({"url": (url, "/srv/other")}, "content_urls"),
        ({"url": "ftp://mirror.example/"}, "url: "),
    ):
        with subtests.test(words):
            usual = {"list_command": ("/bin/cat",), "list_url": "", "source": "", "probe": ""}
            down.configure(**{**usual, "url": url, **settings})
            ended = down.sync()
            assert ended.code == ExitCode.CONFIG, ended
            assert words in ended.err


def test_doctor_and_log(place: Place) -> None:
    down = place.printing()
    down.synced()
    doctor = down.run("doctor", "m")
    assert "/bin/cat lists all of it, at most once in 0 minutes" in doctor.out
    assert doctor.code == 0, doctor
    assert "published" in down.run("log", "m").out
