"""`huai-client doctor`: well on a real mirror, and each check sees what it is for."""

import os
import shutil
import subprocess
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from huai_client.state.lock import module_lock
from huai_client.state.paths import ModulePlaces, module_places
from huai_schema.errors import ExitCode
from tests.support.answering import QuietHandler, answering
from tests.support.mounting import needs_mounts
from tests.support.nginx import nginx
from tests.support.rsyncd import rsync_daemon
from tests.support.upstream import T0, Downstream, Site, Upstream, serving
from tests.support.weak_network import silent

NO_URL = "http://127.0.0.1:9"


@pytest.fixture(name="pair")
def synced_pair(place: Site) -> tuple[Upstream, Downstream]:
    up = place.upstream()
    up.many(b"folder", 5)
    up.many(b"other/er", 200)
    return up, place.synced_downstream(up)


def places(down: Downstream) -> ModulePlaces:
    return module_places(down.root, down.name)


def examined(down: Downstream, *, code: int | None = None) -> dict[str, list[dict[str, Any]]]:
    """Findings by check; a failing check has to say what to do."""
    ended = down.run("doctor", down.name, "--json")
    events = ended.events("check")
    failed = [event for event in events if event["result"] == "fail"]
    assert (ended.code != 0) == bool(failed), ended
    assert all(event["fix"] for event in events if event["result"] in ("fail", "warn"))
    if code is not None:
        assert ended.code == code, ended
    (end,) = ended.events("doctor")
    assert end["fail"] == len(failed)
    found: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        found.setdefault(event["check"], []).append(event)
    return found


def results(down: Downstream, check: str, *, code: int | None = None) -> list[str]:
    return [finding["result"] for finding in examined(down, code=code)[check]]


def test_all_is_well_on_a_mirror_that_is_well(pair: tuple[Upstream, Downstream]) -> None:
    _, down = pair
    found = examined(down, code=0)
    bad = [each for all_of in found.values() for each in all_of if each["result"] != "ok"]
    # How full this machine's disks are is its own business.
    assert [each for each in bad if "space" not in each["check"]] == []
    assert len(found) >= 20
    text = down.run("doctor").out
    assert f"{down.name}:" in text
    assert "repository" in text
    assert "fail" not in text


def test_it_changes_nothing(pair: tuple[Upstream, Downstream]) -> None:
    _, down = pair

    def everything() -> dict[Path, object]:
        found: dict[Path, object] = {}
        for path in (down.dest, *down.dest.rglob("*"), *down.root.rglob("*")):
            status = path.stat()
            content = path.read_bytes() if path.is_file() else b""
            found[path] = status.st_ino, status.st_mode, status.st_mtime_ns, content
        found[places(down).lock] = None  # was taken, to be alone
        if down.dest / ".~tmp~" in found:
            found[down.dest / ".~tmp~"] = None  # held the probes
        return found

    os.utime(down.dest, ns=(T0, T0))
    before = everything()
    examined(down)
    assert everything() == before
    assert not (down.dest / ".~tmp~").exists()
    (down.dest / ".~tmp~/huai").mkdir(parents=True)
    (down.dest / ".~tmp~/huai/partial").write_bytes(b"of an interrupted run")
    before = everything()
    examined(down)
    assert everything() == before


def test_a_new_module_is_well_too(place: Site) -> None:
    up = place.upstream()
    up.put(b"a", b"a")
    up.commit()
    down = place.downstream(up)
    found = examined(down, code=0)
    assert "a is there as serial 1 says" in found["content"][0]["message"]
    assert [each["result"] for each in found["repository"]] == ["skipped"]
    assert list(down.dest.iterdir()) == []
    assert not places(down).folder.exists()


def test_a_module_that_is_not_there(pair: tuple[Upstream, Downstream]) -> None:
    _, down = pair
    assert down.run("doctor", "unknown").code == 45


# rsync, root, configuration


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (None, "cannot be started"),
        ("echo 'rsync  version 3.0.9  protocol version 30'", "too old"),
        ("echo 'openrsync: protocol version 29'", "does not say"),
    ],
)
def test_rsync_that_is_missing_or_too_old(
    pair: tuple[Upstream, Downstream], tmp_path: Path, script: str | None, reason: str
) -> None:
    _, down = pair
    if script is not None:
        (tmp_path / "rsync").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "rsync").chmod(0o755)
    shell = {"PATH": str(tmp_path)}
    ended = down.process("doctor", down.name, "--json", environment=shell)
    (finding,) = [each for each in ended.events("check") if each["check"] == "rsync"]
    assert finding["result"] == "fail"
    assert reason in finding["message"]
    assert ended.code == ExitCode.REQUIREMENT


def test_a_root_that_is_missing(pair: tuple[Upstream, Downstream]) -> None:
    _, down = pair
    down.root.rename(down.root.with_name(f"{down.root.name}-away"))
    ended = down.run("doctor", "--json")
    assert ended.code == ExitCode.CONFIG
    first = {event["check"]: event["result"] for event in ended.events("check")}
    assert first["root"] == "fail"
    assert first["root-space"] == "skipped"


def test_a_configuration_that_cannot_be_read(pair: tuple[Upstream, Downstream]) -> None:
    _, down = pair
    with (down.root / "client.toml").open("a") as file:
        file.write("max_delte = 7\n")
    ended = down.run("doctor", "--json")
    assert ended.code == ExitCode.CONFIG
    (finding,) = [each for each in ended.events("check") if each["result"] == "fail"]
    assert finding["check"] == "config"
    assert "max_delte" in finding["message"]
    assert "max_delete" in finding["fix"]


def test_two_modules_in_one_tree(pair: tuple[Upstream, Downstream]) -> None:
    _, down = pair
    inner = f'[modules.inner]\nurl = "{NO_URL}"\ndest = "{down.dest}/folder"\n'
    with (down.root / "client.toml").open("a", encoding="utf-8") as file:
        file.write(inner)
    found = examined(down)
    (finding,) = found["config"]
    assert finding["result"] == "warn"
    assert "in the tree of" in finding["message"]
    (finding,) = found["settings"]
    assert finding["result"] == "fail"
    assert 'protect = ["/folder"]' in finding["fix"]


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"content_urls": ("ftp://x/",)}, "not a content URL"),
        ({"http_headers": "/missing/file"}, "/missing/file"),
        ({"max_delete": "many"}, "many"),
        ({"rsync_options": ("--delete",)}, "--delete"),
        ({"filter": ("? what",)}, "what"),
        ({"filter": (". missing-file",)}, "missing-file"),
    ],
)
def test_settings_that_cannot_be_obeyed(
    pair: tuple[Upstream, Downstream], setting: dict[str, Any], said: str
) -> None:
    _, down = pair
    down.configure(**setting)
    found = examined(down, code=ExitCode.CONFIG)
    assert [each["result"] for each in found["settings"]] == ["fail"]
    assert said in found["settings"][0]["message"]
    assert found["content"][0]["result"] == "skipped"


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


def test_the_lock_and_who_holds_it(pair: tuple[Upstream, Downstream]) -> None:
    _, down = pair
    with module_lock(places(down), wait=0):
        found = examined(down, code=0)
        assert f"held by process {os.getpid()}" in found["lock"][0]["message"]
        # Nobody tries anything out in a tree that a sync works on.
        assert found["hardlinks"][0]["result"] == "skipped"
        old = time.time() - 90_000
        os.utime(places(down).lock, (old, old))
        assert results(down, "lock") == ["warn"]
    assert examined(down)["lock"][0]["message"] == "free"
    # What a killed run has left behind is no lock.
    places(down).lock.write_text(f"{os.getpid()}\n")
    assert examined(down)["lock"][0]["message"] == "free"


def test_what_several_checks_say_is_one_line(pair: tuple[Upstream, Downstream]) -> None:
    _, down = pair
    with module_lock(places(down), wait=0):
        text = down.run("doctor", down.name).out
    assert text.count("another run holds the lock") == 1
    assert "  skipped  reflinks, noreplace, times, modes, names: as hardlinks\n" in text


@pytest.mark.parametrize("kind", ["directory", "symlink"])
def test_a_lock_that_is_none(pair: tuple[Upstream, Downstream], kind: str) -> None:
    _, down = pair
    places(down).lock.unlink()
    if kind == "directory":
        places(down).lock.mkdir()
    else:
        places(down).lock.symlink_to("elsewhere")
    ended = down.sync()
    assert (ended.code, str(places(down).lock) in ended.err) == (ExitCode.FILE_IO, True)
    assert "move away what stands" in ended.err
    assert results(down, "lock", code=ExitCode.FILE_IO) == ["fail"]


def test_a_state_that_cannot_be_read(pair: tuple[Upstream, Downstream]) -> None:
    _, down = pair
    down.state_file.write_text("{}")
    found = examined(down, code=ExitCode.FILE_IO)
    assert found["state"][0]["result"] == "fail"
    assert found["repository"][0]["result"] == "skipped"
    assert found["tree"][0]["result"] == "skipped"


def test_deletions_that_wait_and_cannot_be_read(pair: tuple[Upstream, Downstream]) -> None:
    _, down = pair
    places(down).delayed.write_text("what?\n")
    assert results(down, "state", code=ExitCode.FILE_IO) == ["fail"]


def test_a_run_that_was_cut(pair: tuple[Upstream, Downstream]) -> None:
    import dataclasses

    from huai_client.state.state import save

    _, down = pair
    save(down.state_file, dataclasses.replace(down.state, attempted=("a" * 40,)))
    (finding,) = examined(down, code=0)["state"]
    assert finding["result"] == "warn"
    assert "huai-client sync" in finding["fix"]


def test_runs_that_fail_again_and_again(pair: tuple[Upstream, Downstream], place: Site) -> None:
    _, down = pair
    down.configure(url=NO_URL)
    assert down.sync().code == 10
    down.configure(url=place.url)
    assert results(down, "history", code=0) == ["warn"]
    down.configure(url=NO_URL)
    assert [down.sync().code for _ in range(2)] == [10, 10]
    down.configure(url=place.url)
    (finding,) = examined(down, code=10)["history"]
    assert finding["message"].startswith("3 runs failed")
    assert down.sync().code == 0
    assert results(down, "history") == ["ok"]


def test_a_repository_that_decays(pair: tuple[Upstream, Downstream]) -> None:
    _, down = pair
    packs = sorted((down.repository / "objects/pack").glob("*.pack"))
    assert packs
    for pack in packs:
        pack.chmod(0o644)
        data = bytearray(pack.read_bytes())
        for place in range(len(data) // 2, len(data) - 20):
            data[place] ^= 0xFF
        pack.write_bytes(data)
    found = examined(down, code=ExitCode.UNSOUND)
    assert found["repository"][0]["result"] == "fail", found["repository"]
    assert "--adopt" in found["repository"][0]["fix"]
    assert down.process("sync", down.name, "--adopt").code == 0
    assert down.process("doctor", down.name).code == 0


def test_a_repository_that_is_gone(pair: tuple[Upstream, Downstream]) -> None:
    _, down = pair
    shutil.rmtree(down.repository)
    assert results(down, "repository", code=0) == ["warn"]
    assert not down.repository.exists()
    subprocess.run(["git", "init", "-q", "--bare", down.repository], check=True, timeout=30)
    assert results(down, "repository", code=0) == ["warn"]


# Destination


@pytest.mark.parametrize("kind", ["missing", "symlink", "file"])
def test_a_destination_that_cannot_be_used(pair: tuple[Upstream, Downstream], kind: str) -> None:
    _, down = pair
    away = down.dest.with_name(f"{down.dest.name}-away")
    down.dest.rename(away)
    if kind == "symlink":
        down.dest.symlink_to(away)
    elif kind == "file":
        down.dest.touch()
    found = examined(down, code=ExitCode.DESTINATION)
    assert found["destination"][0]["result"] == "fail"
    assert {found[check][0]["result"] for check in ("space", "tree", "times")} == {"skipped"}


def test_a_disk_that_is_not_mounted(pair: tuple[Upstream, Downstream]) -> None:
    _, down = pair
    down.dest.rename(down.dest.with_name(f"{down.dest.name}-away"))
    down.dest.mkdir()
    assert results(down, "tree", code=ExitCode.DESTINATION) == ["fail"]
    assert results(down, "destination") == ["ok"]


# Upstreams


def test_metadata_that_cannot_be_reached(
    pair: tuple[Upstream, Downstream], place: Site, tmp_path: Path
) -> None:
    _, down = pair
    down.configure(url=NO_URL)
    found = examined(down, code=ExitCode.NETWORK)
    assert [each["result"] for each in found["metadata"]] == ["fail"]
    assert found["clock"][0]["result"] == "skipped"
    # What is here may be old, so nothing is compared with it.
    assert [each["result"] for each in found["content"]] == ["ok", "skipped"]
    down.configure(url=(NO_URL, place.url))
    assert results(down, "metadata", code=0) == ["warn", "ok"]
    down.configure(url=place.url, upstream_name="no-such")
    assert results(down, "metadata", code=ExitCode.UNKNOWN_MODULE) == ["fail"]
    down.configure(url=str(tmp_path / "nothing.git"), upstream_name="")
    assert results(down, "metadata", code=ExitCode.NETWORK) == ["fail"]


def test_metadata_over_other_transports(pair: tuple[Upstream, Downstream]) -> None:
    up, down = pair
    down.configure(url=str(up.places.repository))
    found = examined(down, code=0)
    assert found["metadata"][0]["result"] == "ok"
    assert "which is applied" in found["metadata"][0]["message"]
    assert found["clock"][0]["result"] == "skipped"


def test_content_that_cannot_be_fetched(
    pair: tuple[Upstream, Downstream], place: Site, tmp_path: Path
) -> None:
    up, down = pair
    for url in (
        "rsync://127.0.0.1:9/trees/",
        f"{place.content_url}-not/",
        f"{place.content_url}/no-such/",
        str(tmp_path / "missing"),
    ):
        down.configure(content_urls=(url,))
        (finding,) = examined(down)["content"]
        assert finding["result"] == "fail", url
        down.configure(content_urls=(url, f"{place.content_url}/{up.name}"))
        assert results(down, "content", code=0) == ["warn", "ok"]
    down.configure(content_urls=(str(up.tree),))
    assert results(down, "content", code=0) == ["ok"]


def test_content_that_asks_for_a_password(
    pair: tuple[Upstream, Downstream], tmp_path: Path
) -> None:
    up, down = pair
    secrets = tmp_path / "secrets"
    secrets.write_text("me:right\n")
    secrets.chmod(0o600)
    with rsync_daemon({"trees": up.tree}, auth_users="me", secrets_file=str(secrets)) as url:
        down.configure(content_urls=(f"{url.replace('://', '://me@')}/trees",))
        word = tmp_path / "password"
        for password, result in (("wrong", "fail"), ("right", "ok")):
            word.write_text(password)
            word.chmod(0o600)
            down.configure(rsync_options=(f"--password-file={word}",))
            assert results(down, "content") == [result]


def test_an_upstream_that_is_full_is_no_failure(pair: tuple[Upstream, Downstream]) -> None:
    up, down = pair
    with rsync_daemon({"trees": up.tree}, max_connections="-1") as url:
        down.configure(content_urls=(f"{url}/trees",))
        assert results(down, "content", code=0) == ["warn"]


def test_a_copy_that_is_behind_is_named_before_the_first_sync(
    pair: tuple[Upstream, Downstream], place: Site, tmp_path: Path
) -> None:
    up, _ = pair
    shutil.copytree(up.tree, tmp_path / "behind")
    up.put(b"folder/new", b"new", mtime=T0 + 10**9)
    up.commit()
    down = place.downstream(up, content_urls=(str(tmp_path / "behind"),))
    (finding,) = examined(down, code=ExitCode.PARTIAL)["content"]
    assert "has no folder/new, which serial 2 names" in finding["message"]
    assert "content_urls" in finding["fix"]
    assert list(down.dest.iterdir()) == []
    assert not places(down).folder.exists()
    down.configure(content_urls=(str(tmp_path / "behind"), f"{place.content_url}/{up.name}"))
    assert results(down, "content", code=0) == ["warn", "ok"]


@pytest.mark.parametrize("other", [b"old", b"shorter or longer", b"x" * 4_000_000])
def test_content_that_is_not_what_the_metadata_say(
    pair: tuple[Upstream, Downstream], tmp_path: Path, other: bytes
) -> None:
    """Of the same size and time too: the digest tells."""
    up, down = pair
    up.put(b"folder/new", b"new", mtime=T0 + 10**9)
    up.commit()
    shutil.copytree(up.tree, tmp_path / "other")
    (tmp_path / "other/folder/new").write_bytes(other)
    os.utime(tmp_path / "other/folder/new", ns=(T0 + 10**9, T0 + 10**9))
    with rsync_daemon({"other": tmp_path / "other"}) as url:
        down.configure(content_urls=(f"{url}/other",))
        (finding,) = examined(down, code=ExitCode.MISMATCH)["content"]
    assert "folder/new is not what serial 2 says" in finding["message"]


def test_the_metadata_that_are_here_are_made_use_of_and_stay_as_they_are(
    pair: tuple[Upstream, Downstream],
) -> None:
    up, down = pair
    up.put(b"folder/new", b"new", mtime=T0 + 10**9)
    up.commit()
    before = sorted(path.name for path in down.repository.rglob("*"))
    (finding,) = examined(down, code=0)["content"]
    assert "folder/new is there as serial 2 says" in finding["message"]
    assert sorted(path.name for path in down.repository.rglob("*")) == before
    down.configure(url=str(up.places.repository))
    found = examined(down, code=0)["content"]
    assert [each["result"] for each in found] == ["ok"]


def content(down: Downstream, *, code: int | None = None) -> list[tuple[str, str]]:
    return [(each["result"], each["message"]) for each in examined(down, code=code)["content"]]


def test_web_servers_with_ranges_and_without(pair: tuple[Upstream, Downstream]) -> None:
    up, down = pair
    up.change(block_index=1 << 20)
    up.put(b"large", os.urandom(2 << 20), mtime=T0 + 10**9)
    up.commit()
    root = up.tree.parent
    with nginx(root) as fast, nginx(root, location="max_ranges 0;") as whole:
        down.configure(content_urls=(f"{fast.url}/{up.name}", f"{whole.url}/{up.name}"))
        (good, said), (odd, missing) = content(down, code=0)
        assert good == "ok"
        assert "; ranges, about " in said
        assert "/s, the first byte after " in said
        assert odd == "warn"
        assert missing.endswith("; whole files only, no ranges")
        assert any('206 "bytes=0-262143"' in line for line in fast.requests)
        up.change(block_index=0)
        up.put(b"another", b"x", mtime=T0 + 2 * 10**9)
        up.commit()
        assert [result for result, _ in content(down, code=0)] == ["ok", "ok"]


def test_mirrors_that_stand_in(pair: tuple[Upstream, Downstream], tmp_path: Path) -> None:
    up, down = pair
    (tmp_path / "stale").mkdir()
    with nginx(up.tree.parent) as good, nginx(tmp_path) as stale, silent() as nobody:
        up.change(
            mirrors=(f"{good.url}/{up.name}", f"{stale.url}/stale", f"http://{nobody}/{up.name}")
        )
        up.put(b"new", b"new", mtime=T0 + 10**9)
        up.commit()
        assert len(content(down, code=0)) == 1
        down.configure(mirrors="auto", timeout=2)
        found = content(down, code=0)
        assert [result for result, _ in found] == ["ok", "ok", "warn", "warn"]
        assert f"{stale.url}/stale/: has no new" in found[2][1]


def test_the_file_that_is_compared(pair: tuple[Upstream, Downstream]) -> None:
    """Small, payload, not volatile, let through by the filter; and the one that changed last."""
    up, down = pair
    up.put(b"pool/a", b"a", mtime=T0 + 10**9)
    up.put(b"pool/b", b"b", mtime=T0 + 2 * 10**9)
    late = T0 + 3 * 10**9
    up.put(b"empty", mtime=late)
    up.put(b"large", b"x" * 70_000, mtime=late)
    up.put(b"project/trace/here", b"trace", mtime=late)
    up.put(b"dists/sid/Release", b"index", mtime=late)
    up.put(b"left-out", b"left out", mtime=late)
    up.commit()
    down.configure(filter=("- /left-out",))
    for _ in range(2):
        assert "/: lets us in, and pool/b is there" in examined(down)["content"][0]["message"]
    down.configure(filter=("+ /dists/***", "- *"))
    assert "dists/sid/Release is there" in examined(down)["content"][0]["message"]
    down.configure(filter=("- *",))
    assert "no small file to compare" in examined(down, code=0)["content"][0]["message"]


def another_time(upstream: str, ahead: float) -> AbstractContextManager[str]:
    """The server at `upstream`, with a clock that is so many seconds ahead."""

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


@pytest.mark.parametrize(
    ("ahead", "result", "said"),
    [
        (0, "ok", ""),
        (-150, "warn", " min ahead of"),
        (10_000, "fail", "3 h behind"),
        (-86_400 * 400, "fail", "400 d ahead of"),
    ],
)
def test_a_clock_that_is_wrong(
    pair: tuple[Upstream, Downstream], place: Site, ahead: float, result: str, said: str
) -> None:
    _, down = pair
    with another_time(place.url, ahead) as url:
        down.configure(url=url)
        (finding,) = examined(down)["clock"]
    assert finding["result"] == result
    assert said in finding["message"]


def test_two_commits_of_one_serial(
    pair: tuple[Upstream, Downstream], place: Site, tmp_path: Path
) -> None:
    """Somebody shows this downstream another tree than that one."""
    up, down = pair
    copy = tmp_path / "server"
    shutil.copytree(up.root, copy, symlinks=True)
    config = copy / "server.toml"
    config.write_text(config.read_text().replace(f"{up.root}/static", f"{copy}/static"))
    with serving(copy) as (_, other):
        down.configure(url=(place.url, other))
        (found,) = examined(down, code=0)["agreement"]
        assert "3 places agree" in found["message"]
        up.put(b"new", b"for one")
        up.commit()
        (found,) = examined(down)["agreement"]
        assert (found["result"], "serial 1, serial 2" in found["message"]) == ("ok", True)
        up.put(b"new", b"for the other")
        Upstream(up.name, up.tree, copy).commit()
        (found,) = examined(down, code=ExitCode.ROLLED_BACK)["agreement"]
        assert found["result"] == "fail"
        assert "serial 2 is two commits" in found["message"]
        assert other in found["message"]


def test_one_address_and_nothing_applied_agree_with_nobody(place: Site) -> None:
    up = place.upstream()
    up.put(b"file", b"1")
    up.commit()
    assert results(place.downstream(up), "agreement") == ["skipped"]
