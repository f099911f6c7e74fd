"""`huai-rsync` in place of rsync: the same tree, the same exit code, the same last lines."""

import json
import os
from pathlib import Path

import pytest

from tests.support.loaded import telling
from tests.support.processes import until
from tests.support.rsync_calls import FEDORA, TUNASYNC, Mirror, closing, figure, mirror
from tests.support.upstream import SECONDS, Ended, Site, Upstream, assert_equal

WHOLE = {"tunasync": TUNASYNC, "fedora": FEDORA}
"""Calls that need no rsync."""
HEAVY = ("rich", "blake3", "click", "subprocess", "huai_client.sync.sync")


@pytest.fixture
def pair(place: Site, tmp_path: Path) -> Mirror:
    """An upstream with a bit of everything, committed, and two empty trees."""
    pair = mirror(place, tmp_path)
    up = pair.up
    up.many(b"pool", 20, size=2000)
    up.put(b"dists/Release", b"one")
    up.put(b"odd \xff\n name", b"x", mode=0o600)
    up.at(b"link").symlink_to("pool/1")
    for number, target in enumerate(("/etc/hosts", "../out", "pool/../pool/1", "./pool")):
        up.at(b"leads %d" % number).symlink_to(target)
    os.link(up.at(b"pool/2"), up.at(b"pool/same"))
    set_times(up, 10**9)
    up.commit()
    return pair


def set_times(up: Upstream, seconds: int) -> None:
    """Set the times of what changes: rsync does not see changes within one second."""
    for name in (b"pool", b"dists", b"link", b""):
        os.utime(up.at(name), (seconds, seconds), follow_symlinks=False)


def change(pair: Mirror) -> None:
    """Update the upstream by a change of each kind."""
    up = pair.up
    up.put(b"pool/1", b"new content of one")
    up.put(b"new/folder/file", b"new")
    up.at(b"pool/3").unlink()
    up.at(b"pool/4").chmod(0o600)
    os.utime(up.at(b"pool/5"), ns=(10**18, 10**18))
    up.put(b"dists/Release", b"another one")
    up.at(b"link").unlink()
    up.at(b"link").symlink_to("pool/5")
    set_times(up, 1_100_000_000)
    up.commit()


FIGURES = ("Number of files", "Number of created files", "Number of deleted files")


def assert_figures(ended: Ended, real: Ended) -> None:
    for name in FIGURES:
        assert figure(ended.out, name) == figure(real.out, name)


@pytest.mark.parametrize("options", WHOLE.values(), ids=WHOLE)
def test_both_make_the_same_tree_and_end_alike(pair: Mirror, options: tuple[str, ...]) -> None:
    for update in (lambda _: None, change, lambda _: None):
        update(pair)
        ended, real = pair.call_both(*options)
        assert "the real rsync runs" not in ended.err
        pair.assert_equal()
        assert closing(ended.out) == closing(real.out)
        assert pair.down.state.applied is not None
        if options == TUNASYNC:  # which reads the size of the mirror
            assert_figures(ended, real)
            # rsync counts what symlinks hold as well: here six bytes.
            sizes = [figure(each.out, "Total file size")[:4] for each in (ended, real)]
            assert sizes[0] == sizes[1]
    assert not pair.down.state.attempted


def test_left_out_entries_are_not_damage(pair: Mirror) -> None:
    pair.down.configure(safe_links=True, owners=False)
    assert pair.call(*TUNASYNC).code == 0
    assert sorted(path.name for path in pair.down.dest.glob("leads*")) == ["leads 3"]
    verified = pair.down.verify("--content")
    assert verified.code == 0, verified
    pair.down.configure(safe_links=False)
    assert pair.down.verify().code == 47


def test_a_stopped_run_ends_with_rsyncs_code(pair: Mirror) -> None:
    pair.up.put(b"large", os.urandom(3_000_000))
    pair.up.commit()
    process = pair.spawn(*TUNASYNC, "--bwlimit=300")
    staging = pair.down.dest / ".~tmp~/huai"
    until(staging.exists)
    process.terminate()
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 20
    assert b"(code 20)" in err
    assert pair.call(*TUNASYNC).code == 0
    assert (pair.down.dest / "large").stat().st_size == 3_000_000


def test_a_poll_loads_nothing_heavy(pair: Mirror) -> None:
    assert pair.call(*TUNASYNC).code == 0
    text = pair.program.read_text()
    pair.program.write_text(text.replace("from", f"{telling(HEAVY)}from", 1))
    ended = pair.call(*TUNASYNC)
    assert ended.code == 0
    assert ended.err == "[]\n"


def test_both_name_the_same_changes(pair: Mirror) -> None:
    for program in (pair.call, pair.real):
        assert program("-aH", "--delete").out == ""
    change(pair)
    for options in ("-aHnv", "-aHni", "-aHv"):
        ended, real = pair.call_both(options, "--delete")
        assert names(ended) == names(real)
        assert any(name.endswith("pool/3") for name in names(ended))
    assert_equal(pair.up, pair.down)


def names(ended: Ended) -> list[str]:
    """Return the names that changed, in no order; the top directory shows by chance with rsync.

    A file that was only touched is fetched by rsync, and not by huai.
    """
    lines = ended.out.replace(">f..t......", ".f..t......").split("\n\n")[0].splitlines()
    return sorted(line for line in lines if not line.endswith("./"))


@pytest.mark.parametrize("quiet", [False, True])
def test_symlinks_that_lead_out_are_reported_unless_quiet(pair: Mirror, quiet: bool) -> None:
    ended = pair.call("-aH", "--delete", *(["--quiet"] if quiet else []))
    assert ended.code == 0, ended
    assert ("lead out of the tree" in ended.out + ended.err) is not quiet


def test_a_dry_run_changes_nothing_and_says_so(pair: Mirror) -> None:
    ended, real = pair.call_both("-aHn", "--delete", "-v")
    assert sorted(os.listdir(pair.down.dest)) == []
    assert ended.out.endswith("(DRY RUN)\n")
    assert closing(ended.out) == closing(real.out)
    assert {"pool/19", "pool/"} <= set(ended.out.splitlines()[1:-3])


def damage(tree: Path) -> None:
    """Damage a tree below directories in which nothing changes upstream."""
    for number in range(10, 20):
        (tree / f"pool/{number}").unlink()
    (tree / "dists/Release").write_text("broken")
    (tree / "pool/6").chmod(0o600)
    (tree / "pool/own").write_text("a stranger")
    (tree / "link").unlink()


def test_local_damage_is_mended_as_by_rsync(pair: Mirror) -> None:
    """Each day, though nothing is new upstream; huai-rsync says what, as rsync does."""
    options = ("-aH", "--delete", "-v")
    pair.call_both(*options)
    for aged in (False, True):
        for tree in (pair.down.dest, pair.twin):
            damage(tree)
        if aged:
            memory = pair.down.state_file.parent / "rsync.json"
            state = json.loads(memory.read_bytes())
            memory.write_text(json.dumps({**state, "compared": state["compared"] - 86_400}))
            environment = {}
        else:
            assert names(pair.call(*options)) == ["receiving incremental file list"]
            assert not (pair.down.dest / "link").is_symlink()
            environment = {"HUAI_RSYNC_COMPARE": "0"}
        ended, real = pair.call(*options, environment=environment), pair.real(*options)
        assert (ended.code, real.code) == (0, 0)
        assert names(ended) == names(real)
        assert "deleting pool/own" in names(ended)
        pair.assert_equal()


def test_a_wrong_time_span_is_reported(pair: Mirror) -> None:
    settings = {"HUAI_RSYNC_COMPARE": "daily", "HUAI_RSYNC_FALLBACK": "no"}
    ended = pair.call("-aH", "--delete", environment=settings)
    assert (ended.code, "HUAI_RSYNC_COMPARE" in ended.err) == (1, True)
    assert pair.call("-aH", "--delete").code == 0
    pair.down.dest.rename(pair.down.dest.with_name("unmounted"))
    pair.down.dest.mkdir()
    settings = {"HUAI_RSYNC_COMPARE": "0", "HUAI_RSYNC_FALLBACK": "no"}
    ended = pair.call("-aH", "--delete", environment=settings)
    assert ended.code == 3
    assert "holds nothing of what was synced" in ended.err
    assert os.listdir(pair.down.dest) == []


def test_files_are_counted_as_by_rsync_with_a_filter(pair: Mirror) -> None:
    pair.down.configure(filter=("- /pool/1*", "- /new/"))
    options = ("-aH", "--delete", "--stats", "--exclude=/pool/1*", "--exclude=/new/")
    for update in (lambda _: None, change, lambda _: None, grow, unlink):
        update(pair)
        ended, real = pair.call_both(*options)
        assert "the real rsync" not in ended.err
        assert_figures(ended, real)


def test_extraneous_symlinks_are_counted_as_symlinks(pair: Mirror) -> None:
    for tree in (pair.down.dest, pair.twin):
        (tree / "extraneous").symlink_to("0")
        (tree / "pool/dir").mkdir(parents=True)
        (tree / "pool/dir/link").symlink_to("0")
    for _ in range(2):
        ended, real = pair.call_both("-aH", "--delete", "--stats")
        assert "the real rsync" not in ended.err
        assert_figures(ended, real)


def unlink(pair: Mirror) -> None:
    """Remove a symlink."""
    pair.up.at(b"pool/second/link").unlink()
    pair.up.commit()


def grow(pair: Mirror) -> None:
    """Add more of each kind, a part of it left out."""
    pair.up.many(b"pool/1st", 3)
    pair.up.many(b"pool/second", 3)
    pair.up.at(b"pool/second/link").symlink_to("0")
    pair.up.at(b"pool/6").unlink()
    pair.up.commit()


def test_modes_are_kept_only_if_asked_for(pair: Mirror) -> None:
    """As rsync does: set-id bits with --perms, the own ones and the umask without."""
    pair.call_both("-rlt", "--delete")
    pair.up.put(b"pool/6", b"changed", mode=0o6755)
    pair.up.put(b"pool/open", b"new", mode=0o4777)
    pair.up.at(b"dists").chmod(0o777)
    pair.up.commit()
    for option in ("-rlt", "-rltp", "-rlt"):
        pair.call_both(option, "--delete")
        pair.assert_equal(links=False)
    assert pair.call("-rltpH", "--delete", "--chmod=D755,F644").err == ""
    assert {path.stat().st_mode & 0o7777 for path in pair.down.dest.glob("pool/*")} == {0o644}
    assert (pair.down.dest / "dists").stat().st_mode & 0o7777 == 0o755
