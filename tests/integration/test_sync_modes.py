"""Set-id bits and what everybody may write to: applied only where the administrator says so."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from huai_client.config.modes import Modes
from huai_client.state.state import save
from tests.support.processes import run_program
from tests.support.unprivileged import NOBODY, program_as_nobody
from tests.support.upstream import ENVIRONMENT, Site, Upstream, site


@pytest.fixture
def own(short_path: Path) -> Iterator[Site]:
    """A site that another user reaches."""
    with site(short_path) as place:
        yield place


def mode(tree: Path, path: str = ".") -> int:
    return stat.S_IMODE((tree / path).stat().st_mode)


def modes(tree: Path) -> dict[str, int]:
    return {path: mode(tree, path) for path in ("suid", "sgid", "open", "plain", "d", "sticky")}


STATED = {"suid": 0o4755, "sgid": 0o2711, "open": 0o666, "plain": 0o644, "d": 0o2777}
STATED["sticky"] = 0o1777
SAFE = {"suid": 0o755, "sgid": 0o711, "open": 0o664, "plain": 0o644, "d": 0o2775}
SAFE["sticky"] = 0o1775


def upstream(place: Site) -> Upstream:
    up = place.upstream()
    for name, stated in STATED.items():
        if name in ("d", "sticky"):
            up.at(name.encode()).mkdir()
        else:
            up.put(name.encode(), name.encode())
        up.at(name.encode()).chmod(stated)
    up.tree.chmod(0o777)
    up.commit()
    return up


def test_set_id_and_world_writable_modes_are_withheld_and_reported(place: Site) -> None:
    down = place.downstream(upstream(place))
    ended = down.sync("--json")
    assert ended.code == 0, ended
    assert modes(down.dest) == SAFE
    assert mode(down.dest) == 0o775
    assert ended.events("sync")[0]["reduced_modes"] == 6
    warnings = [event["message"] for event in ended.events("warning")]
    assert len([text for text in warnings if "made safe" in text]) == 1, warnings
    assert down.verify("--content").code == 0
    assert down.plan() == []
    again = down.synced()
    assert again["changed"] is False
    assert "reduced_modes" not in again  # nothing was planned


def test_a_change_of_the_setting_is_brought_about_by_the_next_sync(place: Site) -> None:
    down = place.downstream(upstream(place), modes=Modes.EXACT)
    assert down.synced()["reduced_modes"] == 0
    assert (modes(down.dest), mode(down.dest)) == (STATED, 0o777)
    down.configure(modes=Modes.SAFE)
    assert down.verify().code == 0  # by what was applied
    assert {what for what, _ in down.plan()} == {"attributes", "directory"}
    assert down.synced()["reduced_modes"] == 6
    assert modes(down.dest) == SAFE
    down.configure(modes=Modes.EXACT)
    assert down.synced()["summary"]["attributes"] == 6
    assert modes(down.dest) == STATED
    save(
        down.state_file, msgspec.structs.replace(down.state, filter="")
    )  # as older versions wrote it
    down.configure(modes=Modes.SAFE)
    down.synced()
    assert modes(down.dest) == SAFE
    assert down.run("status", "--json").events()[0]["modes"] == "safe"


def test_an_adopted_tree_loses_what_is_not_safe(place: Site) -> None:
    up = upstream(place)
    down = place.downstream(up)
    for name, stated in STATED.items():
        target = down.dest / name
        if name in ("d", "sticky"):
            target.mkdir()
        else:
            target.write_bytes(name.encode())
            os.utime(target, ns=(0, up.at(name.encode()).stat().st_mtime_ns))
        target.chmod(stated)
    assert down.synced()["summary"]["fetches"] == 0
    assert modes(down.dest) == SAFE


def test_local_modes_are_those_of_rsync_without_perms(place: Site) -> None:
    up = upstream(place)
    down = place.downstream(up, modes=Modes.LOCAL)
    mask = os.umask(0o027)
    try:
        down.synced()
        expected = {name: stated & 0o777 & ~0o027 for name, stated in STATED.items()}
        assert modes(down.dest) == expected
        (down.dest / "plain").chmod(0o4600)
        (down.dest / "d").chmod(0o711)
        up.put(b"plain", b"more", mode=0o644, mtime=None)
        up.put(b"d/new", b"new", mode=0o666)
        up.at(b"suid").chmod(0o700)
        up.commit()
        down.synced()
    finally:
        os.umask(mask)
    assert mode(down.dest, "plain") == 0o4600
    assert (down.dest / "plain").read_bytes() == b"more"
    assert mode(down.dest, "d") == 0o711
    assert mode(down.dest, "d/new") == 0o640
    assert mode(down.dest, "suid") == expected["suid"]
    assert down.verify().code == 0
    down.configure(modes=Modes.EXACT)
    down.synced()
    assert mode(down.dest, "plain") == 0o644
    assert mode(down.dest, "d") == 0o2777


def test_a_policy_of_a_later_version_is_refused(place: Site) -> None:
    down = place.downstream(upstream(place))
    down.synced()
    text = down.state_file.read_text()
    assert "modes safe" in text
    down.state_file.write_text(text.replace("modes safe", "modes odd"))
    ended = down.run("verify", down.name)
    assert ended.code == 40
    assert "does not know" in ended.err


def test_what_its_owner_may_not_read_is_no_difference(own: Site) -> None:
    """An ordinary user syncs modes such as 000, and does not want to hear that for ever."""
    up = own.upstream()
    up.put(b"closed", b"content", mode=0)
    up.put(b"shut/in", b"content")
    up.at(b"shut").chmod(0)
    up.put(b"open", b"content")
    up.commit()
    down = own.downstream(up)
    own.folder.chmod(0o755)
    for path in (down.dest, down.root, down.root / "client.toml"):
        os.chown(path, NOBODY, NOBODY)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        program = program_as_nobody("huai_client")
        command = [sys.executable, "-c", program, "--root", str(down.root), *arguments]
        return run_program(*command, env=ENVIRONMENT)

    done = run("sync", down.name)
    assert done.returncode == 0, done.stderr
    done = run("verify", down.name, "--content")
    assert done.returncode == 0, done
    assert "1 file has no digest, or may not be read" in done.stderr
    (down.dest / "open").chmod(0)
    done = run("verify", down.name, "--content")
    assert done.returncode == 47
    assert "open" in done.stdout
    assert "closed" not in done.stdout
    assert "shut" not in done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can set any group")
def test_new_files_get_the_group_of_a_set_gid_directory(place: Site) -> None:
    up = place.upstream()
    up.put(b"d/old", b"old", mode=0o640)
    down = place.synced_downstream(up, owners=False)
    os.chown(down.dest / "d", -1, 12345)
    (down.dest / "d").chmod(0o2775)
    up.put(b"d/new", b"new", mode=0o640)
    up.commit()
    down.synced()
    assert (down.dest / "d/new").stat().st_gid == 12345
    assert mode(down.dest, "d/new") == 0o640
