"""Upstreams that do not run huai: a mirror needs the list of their rsync, and no more.

Package: openssh-server.
"""

import os
import shlex
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from errno import ENOSPC
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest

from huai_client.config.hooks import Hooks
from huai_client.metadata.source import fetch
from huai_client.metadata.source.daemon import ListedDaemon, ListOutcome
from huai_client.metadata.source.record import LIST_NAME, RECORD_NAME, SourceRecord, save_record
from huai_native._native import EntryList
from huai_schema.diff.changes import Change
from huai_schema.errors import ExitCode
from tests.support import committing
from tests.support.connect_proxy import connecting
from tests.support.listening import listening
from tests.support.local_trees import fingerprint
from tests.support.plain_upstream import (
    BESIDE,
    NOTHING,
    Listed,
    Place,
    Plain,
    Stamped,
    differences,
    serving_plainly,
)
from tests.support.rsyncd import IS_ROOT, rsync_daemon
from tests.support.scripted_http import Reply, scripted
from tests.support.sshd import secure_shell
from tests.support.unprivileged import NOBODY
from tests.support.upstream import SECONDS, T0, Downstream, Upstream


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with serving_plainly(tmp_path_factory.mktemp("plain")) as place:
        yield place


def upstream(place: Place, kind: type[Plain] = Plain) -> Plain:
    """A tree with something of each type, published."""
    up = place.upstream(kind)
    fill(up)
    up.publish()
    return up


def fill(up: Upstream) -> None:
    """Make something of each type."""
    for folder in (b"pool", b"pool/a", b"dists"):
        up.many(folder, 5)
    up.at(b"empty").mkdir()
    up.put(b"h/one", b"linked")
    up.at(b"h/two").hardlink_to(up.at(b"h/one"))
    up.at(b"h/far").mkdir()
    up.at(b"h/far/three").hardlink_to(up.at(b"h/one"))
    up.at(b"link").symlink_to("pool")
    up.at(b"pool/link").symlink_to("../dists/nothing")


def synced(place: Place, kind: type[Plain] = Plain) -> tuple[Plain, Downstream]:
    """An `upstream`, and a downstream in step with it."""
    up = upstream(place, kind)
    down = place.downstream(up)
    down.synced()
    return up, down


def assert_equal(up: Plain, down: Downstream) -> None:
    assert differences(up, down) == ""
    assert down.verify().code == 0


# Changes.


def _new(up: Upstream) -> None:
    up.put(b"pool/new", b"new")
    up.put(b"new/deep/er/file", b"new")


def _remove(up: Upstream) -> None:
    up.at(b"pool/1").unlink()
    up.at(b"new/deep/er/file").unlink()
    up.at(b"new/deep/er").rmdir()


def _rename(up: Upstream) -> None:
    up.at(b"pool/2").rename(up.at(b"pool/renamed"))
    up.at(b"pool/a").rename(up.at(b"dists/b"))


def _chmod(up: Upstream) -> None:
    up.at(b"pool/3").chmod(0o755)
    up.at(b"dists").chmod(0o700)


def _touch(up: Upstream) -> None:
    os.utime(up.at(b"pool/4"), ns=(T0, T0 + 1))
    os.utime(up.at(b"empty"), ns=(T0, T0 + 2))


def _retarget(up: Upstream) -> None:
    up.at(b"link").unlink()
    up.at(b"link").symlink_to("dists")


def _to_file(up: Upstream) -> None:
    shutil.rmtree(up.at(b"new"))
    up.put(b"new", b"a file")


def _to_directory(up: Upstream) -> None:
    up.at(b"new").unlink()
    up.put(b"new/again", b"a directory")


def _link(up: Upstream) -> None:
    up.at(b"dists/three").hardlink_to(up.at(b"dists/3"))
    up.at(b"h/four").hardlink_to(up.at(b"h/one"))


def _unlink(up: Upstream) -> None:
    up.at(b"h/one").unlink()
    up.put(b"h/one", b"alone")
    up.at(b"dists/3").unlink()


def _odd_names(up: Upstream) -> None:
    for name in (b"back\\slash", b"\\#012", b"\xff\xfe", "ü".encode(), b"[End]", b" ", b"*?["):
        up.put(b"odd/" + name, name)
    up.at(b"odd/target").symlink_to(os.fsdecode(b"\xff\\n"))


def _newlines(up: Upstream) -> None:
    up.put(b"odd/new\nline", b"1")
    up.put(b"odd/tab\tpool", b"1")
    up.put(b"\n/\n\n", b"2")


def _without_newlines(up: Upstream) -> None:
    up.at(b"odd/new\nline").unlink()
    up.at(b"odd/tab\tpool").unlink()


CHANGES: Mapping[str, Callable[[Upstream], object]] = {
    "new": _new,
    "changed": lambda up: up.put(b"pool/0", b"longer than before"),
    "changed, of the same size": lambda up: up.put(b"pool/1", b"abcdefghij", mtime=T0 + 7),
    "removed": _remove,
    "renamed": _rename,
    "modes": _chmod,
    "times": _touch,
    "symlink with another target": _retarget,
    "directory becomes file": _to_file,
    "file becomes directory": _to_directory,
    "hardlink": _link,
    "hardlink broken": _unlink,
    "odd names": _odd_names,
}


BATCHES = (tuple(CHANGES)[:1], tuple(CHANGES)[1:9], tuple(CHANGES)[9:])


def test_changes_arrive(plain: Place, subtests: pytest.Subtests) -> None:
    up = upstream(plain)
    down = plain.downstream(up)
    _newlines(up)
    for names in ((), *BATCHES):
        for name in names:
            CHANGES[name](up)
        with subtests.test(", ".join(names)):
            down.synced("--max-delete=100%")
            assert differences(up, down) == ""
    assert down.verify("--content").code == 0


def test_each_change_arrives_by_a_published_list(plain: Place, subtests: pytest.Subtests) -> None:
    up, down = synced(plain, Listed)
    # Of these a published list has no proper lines, so that the whole tree is listed.
    unlisted = {"newlines and a tab": _newlines, "without them": _without_newlines}
    for name, change in {**CHANGES, **unlisted}.items():
        change(up)
        up.publish()
        with subtests.test(name):
            down.synced("--max-delete=100%")
            assert differences(up, down) == ""
    assert down.verify("--content").code == 0


# Requests.


WHOLE = 20_000
"""Bytes that no list of all entries has less of, after `grow`."""


def grow(up: Plain) -> None:
    up.many(b"many", 2000, 10)


def grown(place: Place, kind: type[Plain]) -> tuple[Plain, Downstream]:
    """A large `upstream`, and a downstream in step with it, for which one small list is enough."""
    up = upstream(place, kind)
    grow(up)
    up.publish()
    down = place.downstream(up)
    with up.sending() as sizes:
        down.synced()
    assert max(sizes) > WHOLE
    with up.sending() as sizes:
        down.synced()
    assert [size < 1000 for size in sizes] == [True]
    return up, down


def test_without_a_probe_a_list_is_made_when_it_is_due(plain: Place) -> None:
    up = upstream(plain)
    grow(up)
    down = plain.downstream(up, list_every="1h")
    down.synced()
    up.put(b"new", b"1")
    with up.sending() as sizes:
        assert down.synced()["commit"]
    assert sizes == []
    assert not (down.dest / "new").exists()
    down.configure(list_every=0)
    with up.sending() as sizes:
        down.synced()
    assert max(sizes) > WHOLE
    assert_equal(up, down)


def test_an_unchanged_time_stamp_costs_one_small_list(
    plain: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    up = upstream(plain, Stamped)
    grow(up)
    up.publish()
    down = plain.downstream(up)
    down.synced()
    up.put(b"new", b"not published yet")
    with up.sending() as sizes:
        down.synced()
    assert len(sizes) == 1
    assert sizes[0] < 1000
    up.publish()
    with monkeypatch.context() as patched:
        listed_names: list[list[bytes]] = []
        list_names = ListedDaemon.list_names

        def listed(daemon: ListedDaemon, names: Iterable[bytes], entries: EntryList) -> ListOutcome:
            listed_names.append([*names])
            return list_names(daemon, listed_names[-1], entries)

        patched.setattr(ListedDaemon, "list_names", listed)
        down.synced()
    assert listed_names == [[b"lastsync"]], "a changed one is asked for once"
    assert_equal(up, down)


def test_a_time_stamp_of_another_name_is_configured(plain: Place) -> None:
    up = upstream(plain)
    grow(up)
    up.put(b"project/stamp", b"1")
    down = plain.downstream(up, probe="project/stamp")
    down.synced()
    up.put(b"new", b"1")
    with up.sending() as sizes:
        down.synced()
    assert len(sizes) == 1
    assert sizes[0] < 1000
    up.put(b"project/stamp", b"2", mtime=T0 + 10**9)
    down.synced()
    assert_equal(up, down)


def test_only_what_a_published_list_names_is_listed(plain: Place) -> None:
    up, down = grown(plain, Listed)
    up.put(b"many/7", b"another content")
    up.at(b"many/8").unlink()
    up.publish()
    with up.sending() as sizes:
        down.synced()
    # Of the published list only the differences are fetched.
    assert max(sizes) < WHOLE
    assert_equal(up, down)


def test_a_commit_that_only_the_record_of_the_list_names_is_applied(plain: Place) -> None:
    """A kill may come between the record and the ref."""
    up = plain.upstream(Listed)
    up.put(b"file", b"1")
    up.publish()
    down = plain.downstream(up)
    down.synced()
    (fetched,) = down.root.rglob("refs/huai/fetched")
    applied = fetched.read_bytes()
    up.put(b"file", b"22")
    up.publish()
    assert down.plan() != []
    assert fetched.read_bytes() != applied
    fetched.write_bytes(applied)
    down.synced()
    assert differences(up, down) == ""


def test_a_list_that_cannot_be_used_changes_nothing(
    plain: Place, subtests: pytest.Subtests
) -> None:
    up, down = synced(plain, Listed)
    up.put(b"pool/new", b"1")
    up.publish()
    published = up.at(BESIDE[0])
    right, state = published.read_bytes(), down.state
    before = fingerprint(down.dest)
    for wrong, words in (
        (right.replace(b"\n[End]\n", b"\n"), "[End] is missing"),
        (right[:-20], "[End] is missing"),
        (right.replace(b"]\n2\n", b"]\n4\n"), "a version that is not supported"),
        (b"<html>" + right, "not a list of files"),
        (right.replace(b"pool/new", b"../new"), "cannot name an entry"),
    ):
        with subtests.test(words):
            published.write_bytes(wrong)
            ended = down.sync()
            assert ended.code == ExitCode.FORMAT, ended
            assert f"{up.url}/fullfiletimelist-all: " in ended.err
            assert words in ended.err
            assert fingerprint(down.dest) == before
            assert down.state.applied == state.applied
    published.write_bytes(right)
    down.synced()
    assert_equal(up, down)


def test_what_a_published_list_no_longer_names_is_deleted(plain: Place) -> None:
    """Also where the daemon still has it; and not more than the limit."""
    up = upstream(plain, Listed)
    up.many(b"many", 20)
    up.publish()
    down = plain.downstream(up, max_delete=5)
    down.synced()
    for number in range(7):
        up.at(b"many/%d" % number).unlink()
    up.publish()
    before = fingerprint(down.dest)
    ended = down.sync()
    assert ended.code == ExitCode.MAX_DELETE
    assert fingerprint(down.dest) == before
    down.synced("--max-delete=7")
    assert_equal(up, down)


def test_a_file_that_vanished_after_the_published_list(plain: Place) -> None:
    up, down = synced(plain, Listed)
    up.put(b"pool/new", b"1")
    up.put(b"pool/0", b"changed")
    up.put(b"pool/1", b"changed, too")
    up.publish()
    up.at(b"pool/new").unlink()
    up.at(b"pool/0").unlink()
    assert down.sync().code in (ExitCode.OK, ExitCode.VANISHED)
    assert (down.dest / "pool/1").read_bytes() == b"changed, too"
    up.publish()
    down.synced()
    assert_equal(up, down)


def test_a_run_that_is_cut_at_its_record_loses_no_change(
    plain: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A published list without the record of its commit would hide what it names."""
    up, down = synced(plain, Listed)
    up.put(b"pool/new", b"1")
    up.publish()

    def cut(repository: Path, record: SourceRecord) -> None:
        if record.listed:
            raise OSError(ENOSPC, os.strerror(ENOSPC))
        save_record(repository, record)

    monkeypatch.setattr(fetch, "save_record", cut)
    assert down.sync().code != 0
    monkeypatch.undo()
    down.synced()
    assert_equal(up, down)


def test_the_record_of_the_last_list_may_be_lost(plain: Place) -> None:
    """The list of the whole tree is the next commit of the same module."""
    up, down = synced(plain, Stamped)
    (down.repository / RECORD_NAME).unlink()
    down.synced()
    up.put(b"pool/new", b"1")
    up.publish()
    (down.repository / RECORD_NAME).write_bytes(b"{")
    down.synced()
    assert_equal(up, down)


def test_the_last_published_list_may_be_damaged(plain: Place) -> None:
    up, down = synced(plain, Listed)
    for damage in (b"", b"[Version]\n2\n"):
        up.put(b"pool/new", b"1" + damage)
        up.at(b"pool/1").unlink(missing_ok=True)
        up.publish()
        (down.repository / LIST_NAME).write_bytes(damage)
        down.synced()
        assert_equal(up, down)


def test_another_upstream_of_the_same_tree_takes_over(plain: Place) -> None:
    up, down = synced(plain)
    other = upstream(plain)
    shutil.rmtree(other.tree)
    subprocess.run(["cp", "-a", up.tree, other.tree], check=True, timeout=SECONDS)
    other.put(b"pool/new", b"1")
    other.at(b"pool/1").unlink()
    down.configure(url=("rsync://127.0.0.1:1/m", other.url))
    down.synced()
    assert_equal(other, down)
    down.configure(url=up.url)
    down.synced()
    assert_equal(up, down)


def test_a_tree_that_rsync_made_is_adopted(plain: Place) -> None:
    up = upstream(plain)
    down = plain.downstream(up)
    source = f"{up.tree}/"
    subprocess.run(["rsync", "-aH", source, down.dest], check=True, timeout=SECONDS)
    files = [path for path in down.dest.rglob("*") if path.is_file()]
    before = [path.lstat() for path in files]
    result = down.synced()
    assert result.get("received", 0) == 0, result
    assert [path.lstat() for path in files] == before
    assert_equal(up, down)


def test_a_list_that_fails_soon_after_the_last_one_is_no_success(tmp_path: Path) -> None:
    up = Plain("m", tmp_path / "tree", NOTHING)
    up.tree.mkdir()
    up.many(b"files", 5)
    log = tmp_path / "log"
    with rsync_daemon({"m": up.tree}, log_file=str(log)) as url:
        up.url, up.log = f"{url}/m", log
        down = Place(tmp_path, url, log).downstream(up)
        down.synced()
    before = down.state
    for _ in range(2):
        ended = down.sync()
        assert ended.code == ExitCode.NETWORK, ended
        assert "Connection refused" in ended.err
    assert down.state.applied == before.applied


@pytest.mark.skipif(not IS_ROOT, reason="needs a daemon of another user")
def test_what_the_daemon_cannot_read_is_kept(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    number = str(NOBODY)
    with serving_plainly(tmp_path / "plain", uid=number, gid=number) as place:
        up = place.upstream()
        up.many(b"closed/below", 5)
        up.many(b"open", 5)
        down = place.downstream(up)
        down.synced()
        up.at(b"closed").chmod(0)
        up.at(b"open/1").unlink()
        up.put(b"open/new", b"1")
        ended = down.sync("--quiet")
        assert ended.code == 0, ended
        assert "could not read all of its tree" in ended.err
        assert "Permission denied" in ended.err
        assert not down.sync("--quiet").err, "it is said once"
        assert "could not read all of its tree" in down.run("status", up.name).out
        unlisted = down.dest / "closed/below/unlisted"
        unlisted.write_text("the upstream may have it")
        assert down.sync("--adopt", "--delete-extraneous").code == 0
        unlisted.unlink()
        assert len(list((down.dest / "closed/below").iterdir())) == 5
        assert (down.dest / "open/new").exists()
        assert (down.dest / "open/1").exists(), "no entry is known to be gone"
        up.at(b"closed").chmod(0o755)
        up.at(b"closed/below/1").unlink()
        assert "could not read" not in down.sync().err
        assert_equal(up, down)


@pytest.mark.skipif(not IS_ROOT, reason="needs a daemon of another user")
def test_what_a_partial_list_lacked_is_listed_a_day_later(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    number = str(NOBODY)
    with serving_plainly(tmp_path / "plain", uid=number, gid=number) as place:
        up = place.upstream(Listed)
        up.many(b"closed", 2)
        up.publish()
        up.at(b"closed").chmod(0)
        down = place.downstream(up)
        assert "could not read all of its tree" in down.run("plan", up.name).err
        down.synced()
        up.at(b"closed").chmod(0o755)
        (path,) = down.root.rglob(RECORD_NAME)
        for days in (0, 2):
            up.put(b"open", b"%d" % days, mtime=T0 + days)
            up.publish()
            record = msgspec.json.decode(path.read_bytes(), type=SourceRecord)
            old = msgspec.structs.replace(record, all_listed=time.time() - days * 86_400)
            save_record(path.parent, old)
            down.synced()
            assert (down.dest / "closed/1").exists() is (days > 1)
        assert_equal(up, down)


@pytest.mark.skipif(not IS_ROOT, reason="needs a daemon of another user")
def test_a_partial_list_without_the_other_names_of_a_file_is_no_damage(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    number = str(NOBODY)
    with serving_plainly(tmp_path / "plain", uid=number, gid=number) as place:
        up = place.upstream()
        up.put(b"a", b"1")
        up.at(b"closed").mkdir()
        up.at(b"closed/b").hardlink_to(up.at(b"a"))
        down = place.downstream(up)
        down.synced()
        up.at(b"a").unlink()
        up.put(b"a", b"22")
        up.at(b"closed").chmod(0)
        ended = down.sync()
        assert ended.code == ExitCode.NETWORK, ended
        assert "could not read all of its tree" in ended.err
        assert (down.dest / "a").read_bytes() == b"1"


# ssh.


def test_rsync_behind_a_real_sshd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    up = Plain("m", tmp_path / "tree", NOTHING)
    up.tree.mkdir()
    for change in (_newlines, _odd_names):
        change(up)
    up.many(b"pool", 5)
    up.put(b"lastsync", b"1")
    up.url = f"127.0.0.1:{up.tree}"
    down = Place(tmp_path, "", tmp_path / "log").downstream(up, source="rsync")
    with secure_shell(tmp_path) as shell:
        monkeypatch.setenv("RSYNC_RSH", shell)
        down.synced()
        assert_equal(up, down)
        serial = down.state.serial
        up.put(b"pool/new", b"1")
        down.synced()
        assert down.state.serial == serial, "the time stamp is asked alone"
        up.at(b"pool/1").unlink()
        up.put(b"lastsync", b"2", mtime=T0 + 10**9)
        down.synced()
        assert_equal(up, down)
        assert "lastsync tells whether anything is new" in down.run("doctor", "m").out
        (tmp_path / "user.pub").write_text("")
        ended = down.sync()
        assert ended.code == ExitCode.NETWORK, ended
        assert "Permission denied" in ended.err
        down.configure(rsync_options=("-e", "echo"))
        ended = down.sync()
        assert ended.code == ExitCode.NETWORK, ended
        assert "this is not rsync" in ended.err


def test_a_published_list_behind_a_real_sshd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    up = Listed("m", tmp_path / "tree", NOTHING)
    up.tree.mkdir()
    up.many(b"pool", 5)
    up.publish()
    up.url = f"127.0.0.1:{up.tree}"
    with secure_shell(tmp_path) as shell:
        monkeypatch.setenv("RSYNC_RSH", "false")
        settings = {"source": "rsync", "rsync_options": ("-e", shell)}
        down = Place(tmp_path, "", tmp_path / "log").downstream(up, **settings)
        down.synced()
        up.put(b"pool/new", b"1")
        up.at(b"pool/1").unlink()
        up.publish()
        down.synced()
        assert_equal(up, down)


# Errors.


def test_daemons_that_cannot_be_listed(plain: Place, subtests: pytest.Subtests) -> None:
    up = upstream(plain)
    down = plain.downstream(up)
    with ExitStack() as stack:

        def greeting(line: bytes) -> str:
            def greet(client: socket.socket) -> None:
                stack.enter_context(client).sendall(line)

            return f"rsync://127.0.0.1:{stack.enter_context(listening(greet))}/m"

        for url, code, words in (
            (f"{plain.url}/tree", ExitCode.UNKNOWN_MODULE, "lists modules"),
            (f"{up.url}/none", ExitCode.NETWORK, "No such file"),
            ("rsync://127.0.0.1:1/m", ExitCode.NETWORK, "Connection refused"),
            (greeting(b"HTTP/1.1 400 Bad Request\r\n"), ExitCode.NETWORK, "not an rsync daemon"),
            (greeting(b"@RSYNCD: 29\n"), ExitCode.NETWORK, "rsync 3.0.0 and newer"),
            (greeting(b"@RSYNCD: x\n"), ExitCode.NETWORK, "speaks protocol x"),
            (greeting(b"@RSYNCD: 31.0\n@ERROR: max connections (4)\n"), ExitCode.NETWORK, "max c"),
            (greeting(b"@RSYNCD: 31.0\n@RSYNCD: EXIT\n"), ExitCode.NETWORK, "names no module"),
        ):
            with subtests.test(url=url, words=words):
                down.configure(url=url)
                ended = down.sync()
                assert ended.code == code, ended
                assert words in ended.err
    assert list(down.dest.iterdir()) == []
    down.configure(url=up.url)
    down.synced()
    assert_equal(up, down)


def test_a_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = tmp_path / "secrets"
    secrets.write_text("me:right\n")
    secrets.chmod(0o600)
    folder = tmp_path / "plain"
    with serving_plainly(folder, auth_users="me", secrets_file=str(secrets)) as place:
        up = place.upstream()
        up.many(b"files", 5)
        up.url = up.url.replace("//", "//me@")
        down = place.downstream(up)
        for password in ("", "wrong"):
            monkeypatch.setenv("RSYNC_PASSWORD", password)
            ended = down.sync()
            assert ended.code == ExitCode.NETWORK, ended
            assert "RSYNC_PASSWORD" in ended.err
        monkeypatch.setenv("RSYNC_PASSWORD", "right")
        down.synced()
        assert_equal(up, down)


def test_a_proxy(plain: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    up = upstream(plain)
    down = plain.downstream(up)
    address = urlsplit(up.url).netloc.encode()
    with scripted(lambda _: Reply("403 Forbidden")) as refusing:
        for value, words in (
            (urlsplit(refusing.url).netloc, "of RSYNC_PROXY: HTTP/1.1 403 Forbidden"),
            ("127.0.0.1:1", "127.0.0.1:1 of RSYNC_PROXY: Connection refused"),
            ("host:port", "RSYNC_PROXY in the environment cannot be parsed"),
        ):
            monkeypatch.setenv("RSYNC_PROXY", value)
            ended = down.sync()
            assert ended.code == ExitCode.NETWORK, ended
            assert words in ended.err
    heads: list[bytes] = []
    with connecting(heads) as proxy:
        monkeypatch.setenv("RSYNC_PROXY", f"me:secret@{proxy}")
        down.synced()
    login = b"Proxy-Authorization: Basic bWU6c2VjcmV0"
    assert heads[0] == b"CONNECT %b HTTP/1.0\r\n%b\r\n\r\n" % (address, login)
    assert len(heads) > 1, "the content comes through it, too"
    assert_equal(up, down)


# Commands.


def test_the_other_commands(plain: Place) -> None:
    up = upstream(plain)
    root, dest = plain.folder / "added", plain.folder / "added-dest"
    dest.mkdir()
    down = Downstream("m", dest, root)

    def run(*words: str) -> str:
        ended = down.run(*words)
        assert ended.code == 0, ended
        return ended.out

    assert "all of it is listed, at most once in 60 minutes" in run("add", "m", up.url, str(dest))
    assert "pool/a/1" in run("plan", "m")
    down.synced()
    up.put(b"pool/new", b"1")
    down.configure(list_every=0)
    down.synced()
    assert "pool/new" in run("diff", "m")
    assert run("log", "m").count("published") >= 2
    assert "nothing" in run("plan", "m")
    run("verify", "m")
    advice = run("doctor", "m")
    assert "does not run huai" in advice
    assert 'to its administrator: "please write a file `lastsync`' in advice
    stamped = upstream(plain, Stamped)
    added = down.run("add", "stamped", stamped.url, f"{dest}-2", "--json").events("added")[0]
    Path(f"{dest}-2").mkdir()
    assert "please publish a list of the tree with each update" in run("doctor", "stamped")
    assert added["listing"].startswith(f"{stamped.url} does not run huai: lastsync tells")
    listed = upstream(plain, Listed)
    assert "it publishes fullfiletimelist-all" in run("add", "l", listed.url, f"{dest}-3")
    Path(f"{dest}-3").mkdir()
    assert "to its administrator" not in run("doctor", "l")
    ended = down.run("add", "unknown", f"{plain.url}/tree", f"{dest}-4")
    assert (ended.code, "lists modules" in ended.err) == (0, True), ended


def test_a_tier_below_commits_what_each_sync_changed(
    plain: Place, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    """Only the first commit reads the whole tree."""
    up, down = synced(plain)
    tier = committing.Upstream(tmp_path, down.dest)
    committing.run_server(tier.root, "add", committing.NAME, str(down.dest))
    first = tier.commit()
    server = tmp_path / "huai-server"
    command = shlex.join(committing.server_command(tier.root))
    server.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    server.chmod(0o755)
    hook = Path(__file__).parents[2] / "hooks" / "post-sync"
    words = ("/usr/bin/env", f"HUAI_SERVER={server}", f"HUAI_ROOT={tier.root}", str(hook))
    down.configure(hooks=Hooks(on_change=(*words, committing.NAME)))
    for name, change in CHANGES.items():
        with subtests.test(name):
            change(up)
            up.publish()
            down.synced()
            audit = tier.audit()
            assert audit.exit_code == 0, audit
    assert tier.head.info.serial == first.head.info.serial + len(CHANGES)
    (down.dest / "empty" / "unlisted").write_text("only a scan of the whole tree finds it")
    up.many(b"large", 150)
    down.synced()
    up.at(b"large").rename(up.at(b"renamed"))
    down.synced()
    audit = tier.audit()
    missed = {each.path for each in audit.first if isinstance(each, Change)}
    assert (missed, audit.counts.total) == ({b"empty", b"empty/unlisted"}, 2), audit


def test_a_file_that_vanished_or_changed_after_the_list(
    plain: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is listed again, and what is not there is not fetched."""
    up, down = synced(plain)
    up.put(b"pool/new", b"1")
    up.put(b"pool/0", b"changed")
    up.put(b"pool/1", b"changed")
    make_list = ListedDaemon.list_tree

    def list_tree(daemon: ListedDaemon, entries: EntryList) -> ListOutcome:
        outcome = make_list(daemon, entries)
        up.at(b"pool/new").unlink(missing_ok=True)
        up.put(b"pool/1", b"changed again")
        return outcome

    monkeypatch.setattr(ListedDaemon, "list_tree", list_tree)
    assert down.sync().code in (ExitCode.OK, ExitCode.VANISHED)
    assert (down.dest / "pool/0").read_bytes() == b"changed"
    assert (down.dest / "pool/1").read_bytes() == b"changed again"
    monkeypatch.undo()
    down.synced()
    assert_equal(up, down)
