"""`huai-client doctor`: well on a real mirror, and each check sees what it is for."""

import os
import shutil
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterable
from contextlib import AbstractContextManager
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import msgspec
import pytest

from huai_client.inspect.doctor import machine
from huai_client.state.paths import ModulePlaces, module_places
from huai_client.state.state import module_lock, save
from huai_schema.errors import ExitCode
from tests.support.answering import QuietHandler, answering
from tests.support.mounting import needs_mounts
from tests.support.nginx import nginx
from tests.support.rsyncd import rsync_daemon
from tests.support.upstream import T0, Downstream, Site, Upstream, serving
from tests.support.weak_network import silent

NO_URL = "http://127.0.0.1:9"
UNITS = Path(__file__).parents[2] / "hooks" / "systemd"
NEWER = T0 + 10**9


@pytest.fixture(name="up")
def upstream(place: Site) -> Upstream:
    up = place.upstream()
    up.many(b"folder", 5)
    up.many(b"other/er", 200)
    return up


@pytest.fixture(name="down")
def downstream(up: Upstream, place: Site) -> Downstream:
    return place.synced_downstream(up)


def places(down: Downstream) -> ModulePlaces:
    return module_places(down.root, down.name)


def examine(down: Downstream, *, code: int | None = None) -> dict[str, list[dict[str, Any]]]:
    """Return the findings by check; a failing check has to say what to do."""
    ended = down.run("doctor", down.name, "--json")
    findings: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in ended.events("check"):
        assert event["fix"] or event["result"] not in ("fail", "warn")
        findings[event["check"]].append(event)
    failures = [result for result in results_of(findings.values()) if result == "fail"]
    assert (ended.code != 0) == bool(failures), ended
    assert code is None or ended.code == code, ended
    assert ended.events("doctor")[0]["fail"] == len(failures)
    return findings


def results_of(findings: Iterable[list[dict[str, Any]]]) -> list[str]:
    return [finding["result"] for finding in chain(*findings)]


def results(down: Downstream, check: str, *, code: int | None = None) -> list[str]:
    return results_of([examine(down, code=code)[check]])


def find_one(down: Downstream, check: str, *, code: int | None = None) -> dict[str, Any]:
    (finding,) = examine(down, code=code)[check]
    return finding


def commit_file(up: Upstream, path: bytes = b"folder/new", content: bytes = b"new") -> None:
    up.put(path, content, mtime=NEWER)
    up.commit()


def move_away(path: Path) -> Path:
    return path.rename(path.with_name(f"{path.name}-away"))


def test_all_is_well_on_a_mirror_that_is_well(down: Downstream) -> None:
    findings = examine(down, code=0)
    # How full this machine's disks are is its own business.
    assert {*results_of(findings[check] for check in findings if "space" not in check)} == {"ok"}
    assert len(findings) >= 20
    text = down.run("doctor").out
    assert f"{down.name}:" in text
    assert "repository" in text
    assert "fail" not in text
    assert down.run("doctor", "unknown").code == 45


def test_it_changes_nothing(down: Downstream) -> None:
    def read_everything() -> dict[Path, object]:
        contents: dict[Path, object] = {}
        for path in (down.dest, *down.dest.rglob("*"), *down.root.rglob("*")):
            status = path.stat()
            content = path.read_bytes() if path.is_file() else b""
            contents[path] = status.st_ino, status.st_mode, status.st_mtime_ns, content
        contents[places(down).lock] = None  # was taken, to be alone
        if down.dest / ".~tmp~" in contents:
            contents[down.dest / ".~tmp~"] = None  # held the probes
        return contents

    os.utime(down.dest, ns=(T0, T0))
    before = read_everything()
    examine(down)
    assert read_everything() == before
    assert not (down.dest / ".~tmp~").exists()
    (down.dest / ".~tmp~/huai").mkdir(parents=True)
    (down.dest / ".~tmp~/huai/partial").write_bytes(b"of an interrupted run")
    before = read_everything()
    examine(down)
    assert read_everything() == before


def test_a_new_module_is_well_too(up: Upstream, place: Site) -> None:
    commit_file(up, b"a", b"a")
    down = place.downstream(up)
    findings = examine(down, code=0)
    assert "has a of serial 1" in findings["content"][0]["message"]
    assert results_of([findings["repository"]]) == ["skipped"]
    assert results(down, "agreement") == ["skipped"], "one address, and nothing applied"
    assert list(down.dest.iterdir()) == []
    assert not places(down).folder.exists()


# rsync, root, configuration


def test_rsync_that_is_missing_or_too_old(
    down: Downstream, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for version, reason in [
        ("", "cannot be started"),
        ("rsync  version 3.0.9  protocol version 30", "too old"),
        ("openrsync: protocol version 29", "is not rsync"),
    ]:
        with subtests.test(reason):
            if version:
                (tmp_path / "rsync").write_text(f"#!/bin/sh\necho '{version}'\n")
                (tmp_path / "rsync").chmod(0o755)
            shell = {"PATH": str(tmp_path)}
            ended = down.process("doctor", down.name, "--json", environment=shell)
            checks = {event["check"]: event for event in ended.events("check")}
            assert checks["rsync"]["result"] == "fail"
            assert reason in checks["rsync"]["message"]
            assert ended.code == ExitCode.REQUIREMENT


def test_services_without_their_restrictions(
    down: Downstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "UNIT_FOLDERS", (tmp_path, tmp_path / "none"))
    assert find_one(down, "units", code=0)["message"] == "0 services of huai"
    (tmp_path / "huai-client.service").touch()
    assert "huai-.service.d is missing" in find_one(down, "units", code=0)["message"]
    shutil.copytree(UNITS / "huai-.service.d", tmp_path / "huai-.service.d")
    assert results(down, "units", code=0) == ["ok"]


def test_a_root_that_is_missing(down: Downstream) -> None:
    move_away(down.root)
    ended = down.run("doctor", "--json")
    assert ended.code == ExitCode.CONFIG
    result = {event["check"]: event["result"] for event in ended.events("check")}
    assert result["root"] == "fail"
    assert result["root-space"] == "skipped"


def test_a_configuration_that_cannot_be_read(down: Downstream) -> None:
    with (down.root / "client.toml").open("a") as file:
        file.write("max_delte = 7\n")
    ended = down.run("doctor", "--json")
    assert ended.code == ExitCode.CONFIG
    (finding,) = [event for event in ended.events("check") if event["result"] == "fail"]
    assert finding["check"] == "config"
    assert "max_delte" in finding["message"]
    assert "max_delete" in finding["fix"]


def test_two_modules_in_one_tree(down: Downstream) -> None:
    with (down.root / "client.toml").open("a", encoding="utf-8") as file:
        file.write(f'[modules.inner]\nurl = "{NO_URL}"\ndest = "{down.dest}/folder"\n')
    findings = examine(down)
    (finding,) = findings["config"]
    assert finding["result"] == "warn"
    assert "in the tree of" in finding["message"]
    (finding,) = findings["settings"]
    assert finding["result"] == "fail"
    assert 'protect = ["/folder"]' in finding["fix"]


def test_settings_that_cannot_be_obeyed(
    up: Upstream, place: Site, subtests: pytest.Subtests
) -> None:
    up.commit()
    settings: dict[str, dict[str, Any]] = {
        "not a content URL": {"content_urls": ("ftp://x/",)},
        "/missing/file": {"http_headers": "/missing/file"},
        "many": {"max_delete": "many"},
        "--delete": {"rsync_options": ("--delete",)},
        "what": {"filter": ("? what",)},
        "missing-file": {"filter": (". missing-file",)},
    }
    for reason, setting in settings.items():
        with subtests.test(setting=setting):
            findings = examine(place.downstream(up, **setting), code=ExitCode.CONFIG)
            assert results_of([findings["settings"]]) == ["fail"]
            assert reason in findings["settings"][0]["message"]
            assert findings["content"][0]["result"] == "skipped"


@needs_mounts
def test_room_is_needed_for_what_is_new_alone(place: Site, tmp_path: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "none", str(tmp_path)], check=True)
    try:
        up = place.upstream()
        up.put(b"a", os.urandom(8 << 20))
        down = place.synced_downstream(up, tmp_path)
        assert set(results(down, "space", code=0)) <= {"warn", "ok"}
        up.put(b"b", os.urandom(8 << 20))
        up.commit()
        assert down.sync().code == ExitCode.NO_SPACE  # its metadata are here now
        assert "fail" in results(down, "space", code=ExitCode.NO_SPACE)
    finally:
        subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


# State


def test_the_lock_and_its_holder(down: Downstream) -> None:
    with module_lock(places(down), wait=0):
        findings = examine(down, code=0)
        assert f"held by process {os.getpid()}" in findings["lock"][0]["message"]
        # The file system of a tree that a sync works on is not tried out.
        assert findings["hardlinks"][0]["result"] == "skipped"
        text = down.run("doctor", down.name).out
        assert text.count("another run holds the lock") == 1
        assert "  skipped  reflinks, noreplace, times, modes, names: same as hardlinks\n" in text
        old = time.time() - 90_000
        os.utime(places(down).lock, (old, old))
        assert results(down, "lock") == ["warn"]
    assert find_one(down, "lock")["message"] == "free"
    # The file that a killed run has left behind holds no lock.
    places(down).lock.write_text(f"{os.getpid()}\n")
    assert find_one(down, "lock")["message"] == "free"


def test_a_lock_that_is_not_a_file(down: Downstream, subtests: pytest.Subtests) -> None:
    lock = places(down).lock
    lock.unlink()
    for kind in ("directory", "symlink"):
        with subtests.test(kind):
            if kind == "directory":
                lock.mkdir()
            else:
                lock.rmdir()
                lock.symlink_to("elsewhere")
            ended = down.sync()
            assert (ended.code, str(lock) in ended.err) == (ExitCode.FILE_IO, True)
            assert "move away what is" in ended.err
            assert results(down, "lock", code=ExitCode.FILE_IO) == ["fail"]


def test_a_state_that_cannot_be_read(down: Downstream) -> None:
    state = down.state_file.read_bytes()
    down.state_file.write_text("{}")
    findings = examine(down, code=ExitCode.FILE_IO)
    assert findings["state"][0]["result"] == "fail"
    assert findings["repository"][0]["result"] == "skipped"
    assert findings["tree"][0]["result"] == "skipped"
    down.state_file.write_bytes(state)
    assert results(down, "state", code=0) == ["ok"]
    places(down).delayed.write_text("what?\n")
    assert results(down, "state", code=ExitCode.FILE_IO) == ["fail"]


def test_a_run_that_was_cut(down: Downstream) -> None:
    save(down.state_file, msgspec.structs.replace(down.state, attempted=("a" * 40,)))
    finding = find_one(down, "state", code=0)
    assert finding["result"] == "warn"
    assert "huai-client sync" in finding["fix"]


def test_runs_that_fail_again_and_again(down: Downstream, place: Site) -> None:
    down.configure(url=NO_URL)
    assert down.sync().code == 10
    down.configure(url=place.url)
    assert results(down, "history", code=0) == ["warn"]
    down.configure(url=NO_URL)
    assert [down.sync().code for _ in range(2)] == [10, 10]
    down.configure(url=place.url)
    assert find_one(down, "history", code=10)["message"].startswith("3 runs failed")
    assert down.sync().code == 0
    assert results(down, "history") == ["ok"]


def test_a_repository_that_decays(down: Downstream) -> None:
    packs = sorted((down.repository / "objects/pack").glob("*.pack"))
    assert packs
    for pack in packs:
        pack.chmod(0o644)
        data = bytearray(pack.read_bytes())
        for place in range(len(data) // 2, len(data) - 20):
            data[place] ^= 0xFF
        pack.write_bytes(data)
    finding = find_one(down, "repository", code=ExitCode.UNSOUND)
    assert finding["result"] == "fail", finding
    assert "--adopt" in finding["fix"]
    assert down.process("sync", down.name, "--adopt").code == 0
    assert down.process("doctor", down.name).code == 0


def test_a_repository_that_is_gone(down: Downstream) -> None:
    shutil.rmtree(down.repository)
    assert results(down, "repository", code=0) == ["warn"]
    assert not down.repository.exists()
    subprocess.run(["git", "init", "-q", "--bare", down.repository], check=True, timeout=30)
    assert results(down, "repository", code=0) == ["warn"]


# Destination


def test_a_destination_that_cannot_be_used(down: Downstream, subtests: pytest.Subtests) -> None:
    away = move_away(down.dest)
    for kind in ("missing", "symlink", "file"):
        with subtests.test(kind):
            if kind == "symlink":
                down.dest.symlink_to(away)
            elif kind == "file":
                down.dest.unlink()
                down.dest.touch()
            findings = examine(down, code=ExitCode.DESTINATION)
            assert findings["destination"][0]["result"] == "fail"
            assert {findings[check][0]["result"] for check in ("space", "tree", "times")} == {
                "skipped"
            }


def test_a_disk_that_is_not_mounted(down: Downstream) -> None:
    move_away(down.dest)
    down.dest.mkdir()
    assert results(down, "tree", code=ExitCode.DESTINATION) == ["fail"]
    assert results(down, "destination") == ["ok"]


# Upstreams


def test_metadata_that_cannot_be_reached(down: Downstream, place: Site, tmp_path: Path) -> None:
    down.configure(url=NO_URL)
    findings = examine(down, code=ExitCode.NETWORK)
    assert results_of([findings["metadata"]]) == ["fail"]
    assert findings["clock"][0]["result"] == "skipped"
    # The metadata on disk may be old, so nothing is compared with them.
    assert results_of([findings["content"]]) == ["ok", "skipped"]
    down.configure(url=(NO_URL, place.url))
    assert results(down, "metadata", code=0) == ["warn", "ok"]
    down.configure(url=place.url, upstream_name="no-such")
    assert results(down, "metadata", code=ExitCode.UNKNOWN_MODULE) == ["fail"]
    down.configure(url=str(tmp_path / "nothing.git"), upstream_name="")
    assert results(down, "metadata", code=ExitCode.NETWORK) == ["fail"]


def test_metadata_over_other_transports(up: Upstream, down: Downstream) -> None:
    down.configure(url=str(up.places.repository))
    findings = examine(down, code=0)
    assert findings["metadata"][0]["result"] == "ok"
    assert "which is applied" in findings["metadata"][0]["message"]
    assert findings["clock"][0]["result"] == "skipped"


def test_content_that_cannot_be_fetched(
    up: Upstream, down: Downstream, place: Site, tmp_path: Path
) -> None:
    for url in (
        "rsync://127.0.0.1:9/trees/",
        f"{place.content_url}-not/",
        f"{place.content_url}/no-such/",
        str(tmp_path / "missing"),
    ):
        down.configure(content_urls=(url,))
        assert results(down, "content") == ["fail"], url
        down.configure(content_urls=(url, f"{place.content_url}/{up.name}"))
        assert results(down, "content", code=0) == ["warn", "ok"]
    down.configure(content_urls=(str(up.tree),))
    assert results(down, "content", code=0) == ["ok"]


def test_content_that_asks_for_a_password(up: Upstream, down: Downstream, tmp_path: Path) -> None:
    secrets = tmp_path / "secrets"
    word = tmp_path / "password"
    secrets.write_text("me:right\n")
    secrets.chmod(0o600)
    with rsync_daemon({"trees": up.tree}, auth_users="me", secrets_file=str(secrets)) as url:
        for password, result in (("wrong", "fail"), ("right", "ok")):
            word.write_text(password)
            word.chmod(0o600)
            down.configure(
                content_urls=(f"{url.replace('://', '://me@')}/trees",),
                rsync_options=(f"--password-file={word}",),
            )
            assert results(down, "content") == [result]


def test_an_upstream_that_is_full_is_no_failure(up: Upstream, down: Downstream) -> None:
    with rsync_daemon({"trees": up.tree}, max_connections="-1") as url:
        down.configure(content_urls=(f"{url}/trees",))
        assert results(down, "content", code=0) == ["warn"]


def test_a_copy_that_is_behind_is_named_before_the_first_sync(
    up: Upstream, place: Site, tmp_path: Path
) -> None:
    shutil.copytree(up.tree, tmp_path / "behind")
    up.commit()
    commit_file(up)
    down = place.downstream(up, content_urls=(str(tmp_path / "behind"),))
    finding = find_one(down, "content", code=ExitCode.PARTIAL)
    assert "folder/new of serial 2 is missing" in finding["message"]
    assert "content_urls" in finding["fix"]
    assert list(down.dest.iterdir()) == []
    assert not places(down).folder.exists()
    down.configure(content_urls=(str(tmp_path / "behind"), f"{place.content_url}/{up.name}"))
    assert results(down, "content", code=0) == ["warn", "ok"]


def test_content_that_is_not_what_the_metadata_say(
    up: Upstream, down: Downstream, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    """The digest tells, if size and time are the same."""
    commit_file(up)
    shutil.copytree(up.tree, tmp_path / "other")
    other = tmp_path / "other/folder/new"
    with rsync_daemon({"other": tmp_path / "other"}) as url:
        down.configure(content_urls=(f"{url}/other",))
        for content in (b"old", b"shorter or longer", b"x" * 4_000_000):
            with subtests.test(size=len(content)):
                other.write_bytes(content)
                os.utime(other, ns=(NEWER, NEWER))
                finding = find_one(down, "content", code=ExitCode.MISMATCH)
                assert "folder/new differs from serial 2" in finding["message"]


def test_metadata_on_disk_are_used_and_not_changed(up: Upstream, down: Downstream) -> None:
    commit_file(up)
    before = sorted(path.name for path in down.repository.rglob("*"))
    finding = find_one(down, "content", code=0)
    assert "has folder/new of serial 2" in finding["message"]
    assert sorted(path.name for path in down.repository.rglob("*")) == before
    down.configure(url=str(up.places.repository))
    assert results(down, "content", code=0) == ["ok"]


def test_web_servers_with_ranges_and_without(up: Upstream, down: Downstream) -> None:
    up.change(block_index=1 << 20)
    commit_file(up, b"large", os.urandom(2 << 20))
    root = up.tree.parent
    with nginx(root) as fast, nginx(root, location="max_ranges 0;") as rangeless:
        down.configure(content_urls=(f"{fast.url}/{up.name}", f"{rangeless.url}/{up.name}"))
        ranges, files = examine(down, code=0)["content"]
        assert (ranges["result"], files["result"]) == ("ok", "warn")
        assert "; ranges, about " in ranges["message"]
        assert "/s, the first byte after " in ranges["message"]
        assert files["message"].endswith("; whole files only, no ranges")
        assert any('206 "bytes=0-262143"' in line for line in fast.requests)
        up.change(block_index=0)
        up.put(b"another", b"x", mtime=NEWER + 10**9)
        up.commit()
        assert results(down, "content", code=0) == ["ok", "ok"]


def test_mirrors_that_stand_in(up: Upstream, down: Downstream, tmp_path: Path) -> None:
    (tmp_path / "stale").mkdir()
    with nginx(up.tree.parent) as good, nginx(tmp_path) as stale, silent() as dead:
        up.change(
            mirrors=(f"{good.url}/{up.name}", f"{stale.url}/stale", f"http://{dead}/{up.name}")
        )
        commit_file(up, b"new")
        assert len(results(down, "content", code=0)) == 1
        down.configure(mirrors="auto", timeout=2)
        findings = examine(down, code=0)["content"]
        assert results_of([findings]) == ["ok", "ok", "warn", "warn"]
        assert f"{stale.url}/stale/: new of serial" in findings[2]["message"]


def test_the_file_that_is_compared(up: Upstream, down: Downstream) -> None:
    """Small, payload, not volatile, let through by the filter; and the one that changed last."""
    up.put(b"pool/a", b"a", mtime=NEWER)
    up.put(b"pool/b", b"b", mtime=NEWER + 1)
    late = NEWER + 2
    up.put(b"empty", mtime=late)
    up.put(b"large", b"x" * 70_000, mtime=late)
    up.put(b"project/trace/here", b"trace", mtime=late)
    up.put(b"dists/sid/Release", b"index", mtime=late)
    up.put(b"left-out", b"left out", mtime=late)
    up.commit()
    down.configure(filter=("- /left-out",))
    for _ in range(2):
        assert "/: accepts connections, and has pool/b" in find_one(down, "content")["message"]
    down.configure(filter=("+ /dists/***", "- *"))
    assert "has dists/sid/Release" in find_one(down, "content")["message"]
    down.configure(filter=("- *",))
    assert "no small file to compare" in find_one(down, "content", code=0)["message"]


def serve_other_time(upstream: str, ahead: float) -> AbstractContextManager[str]:
    """Serve what `upstream` does, with a clock that is so many seconds ahead."""

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            with urlopen(upstream + self.path, timeout=30) as answer:  # noqa: S310
                body = answer.read()
                kind = answer.headers["Content-Type"]
            self.send_response_only(200)
            self.send_header("Date", self.date_time_string(time.time() + ahead))
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return answering(Handler)


def test_a_clock_that_is_wrong(down: Downstream, place: Site, subtests: pytest.Subtests) -> None:
    for ahead, result, difference in [
        (0, "ok", ""),
        (-150, "warn", " min ahead of"),
        (10_000, "fail", "3 h behind"),
        (-86_400 * 400, "fail", "400 d ahead of"),
    ]:
        with subtests.test(ahead=ahead), serve_other_time(place.url, ahead) as url:
            down.configure(url=url)
            finding = find_one(down, "clock")
            assert finding["result"] == result
            assert difference in finding["message"]


def test_two_commits_of_one_serial(
    up: Upstream, down: Downstream, place: Site, tmp_path: Path
) -> None:
    """A server that shows this downstream another tree than its others."""
    copy = tmp_path / "server"
    shutil.copytree(up.root, copy, symlinks=True)
    with serving(copy) as (_, other):
        down.configure(url=(place.url, other))
        assert "3 places agree" in find_one(down, "agreement", code=0)["message"]
        up.put(b"new", b"for one")
        up.commit()
        finding = find_one(down, "agreement")
        assert (finding["result"], "serial 1, serial 2" in finding["message"]) == ("ok", True)
        up.put(b"new", b"for the other")
        Upstream(up.name, up.tree, copy).commit()
        finding = find_one(down, "agreement", code=ExitCode.ROLLED_BACK)
        assert finding["result"] == "fail"
        assert "serial 2 has two commits" in finding["message"]
        assert other in finding["message"]
