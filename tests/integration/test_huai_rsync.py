"""`huai-rsync` in place of rsync: the same tree, the same exit code, the same last lines."""

import json
import os
import time
from pathlib import Path

import pytest

from tests.support.loaded import telling
from tests.support.processes import until
from tests.support.rsync_calls import (
    ARCH,
    FEDORA,
    TUNASYNC,
    USTC,
    Mirror,
    closing,
    figure,
    mirror,
    picture,
)
from tests.support.upstream import SECONDS, Ended, Site, Upstream, assert_equal

WHOLE = {"tunasync": TUNASYNC, "arch": ARCH, "fedora": FEDORA, "ustc": USTC}
"""Calls that huai does by itself."""
HEAVY = ("rich", "blake3", "click", "tenacity", "subprocess", "huai_client.sync.sync")


@pytest.fixture
def pair(place: Site, tmp_path: Path) -> Mirror:
    """An upstream with a bit of everything, committed, and two empty trees."""
    found = mirror(place, tmp_path)
    up = found.up
    up.many(b"pool", 20, size=2000)
    up.put(b"dists/Release", b"one")
    up.put(b"odd \xff\n name", b"x", mode=0o600)
    up.at(b"link").symlink_to("pool/1")
    for number, target in enumerate(("/etc/hosts", "../out", "pool/../pool/1", "./pool")):
        up.at(b"leads %d" % number).symlink_to(target)
    os.link(up.at(b"pool/2"), up.at(b"pool/same"))
    dated(up, 10**9)
    up.commit()
    return found


def dated(up: Upstream, seconds: int) -> None:
    """Give what changes a time: rsync does not see changes within one second."""
    for name in (b"pool", b"dists", b"link", b""):
        os.utime(up.at(name), (seconds, seconds), follow_symlinks=False)


def change(found: Mirror) -> None:
    """What an update of the upstream may be."""
    up = found.up
    up.put(b"pool/1", b"new content of one")
    up.put(b"new/folder/file", b"new")
    up.at(b"pool/3").unlink()
    up.at(b"pool/4").chmod(0o600)
    os.utime(up.at(b"pool/5"), ns=(10**18, 10**18))
    up.put(b"dists/Release", b"another one")
    up.at(b"link").unlink()
    up.at(b"link").symlink_to("pool/5")
    dated(up, 1_100_000_000)
    up.commit()


@pytest.mark.parametrize("options", WHOLE.values(), ids=WHOLE)
def test_both_make_the_same_tree_and_end_alike(pair: Mirror, options: tuple[str, ...]) -> None:
    for update in (lambda _: None, change, lambda _: None):
        update(pair)
        ended, real = pair.call(*options), pair.real(*options)
        assert (ended.code, real.code) == (0, 0), ended
        assert "the real rsync runs" not in ended.err
        assert picture(pair.down.dest) == picture(pair.twin)
        assert closing(ended.out) == closing(real.out)
        head = pair.down.state.applied
        assert head is not None
    assert not pair.down.state.attempted


def test_what_was_left_out_is_no_damage(pair: Mirror) -> None:
    pair.down.configure(safe_links=True, owners=False)
    assert pair.call(*TUNASYNC).code == 0
    assert sorted(path.name for path in pair.down.dest.glob("leads*")) == ["leads 3"]
    verified = pair.down.verify("--content")
    assert verified.code == 0, verified
    pair.down.configure(safe_links=False)
    assert pair.down.verify().code == 47


def test_a_cut_run_is_finished_by_the_next(pair: Mirror) -> None:
    """Killed at several moments; what is there then is no less a tree of huai's."""
    for number in range(4):
        pair.up.many(b"pool/more %d" % number, 30, size=50_000)
        pair.up.commit()
        process = pair.spawn(*TUNASYNC)
        time.sleep(0.25 + 0.1 * number)
        process.kill()
        process.communicate(timeout=SECONDS)
    ended, real = pair.call(*TUNASYNC), pair.real(*TUNASYNC)
    assert (ended.code, ended.err, real.code) == (0, "", 0)
    assert picture(pair.down.dest) == picture(pair.twin)


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


def test_tunasync_reads_the_size_of_the_mirror(pair: Mirror) -> None:
    for update in (lambda _: None, change, lambda _: None):
        update(pair)
        ended, real = pair.call(*TUNASYNC), pair.real(*TUNASYNC)
        for name in ("Number of files", "Number of created files", "Number of deleted files"):
            assert figure(ended.out, name) == figure(real.out, name)
        # rsync counts what symlinks hold as well: here six bytes.
        assert figure(ended.out, "Total file size")[:4] == figure(real.out, "Total file size")[:4]


def test_names_are_those_that_rsync_tells(pair: Mirror) -> None:
    for program in (pair.call, pair.real):
        assert program("-aH", "--delete").out == ""
    change(pair)
    for option in ("-v", "-i"):
        both = ("-aHn", "--delete", option)
        assert names(pair.call(*both)) == names(pair.real(*both))
    told = names(pair.call("-aH", "--delete", "-v"))
    assert told == names(pair.real("-aH", "--delete", "-v"))
    assert "deleting pool/3" in told


def names(ended: Ended) -> list[str]:
    """What was said to change, in no order; the top directory shows by chance with rsync.

    A file that was only touched is fetched by rsync, and not by huai.
    """
    assert ended.code == 0
    lines = ended.out.replace(">f..t......", ".f..t......").split("\n\n")[0].splitlines()
    return sorted(line for line in lines if not line.endswith("./"))


@pytest.mark.parametrize("quiet", [False, True])
def test_symlinks_that_lead_out_are_told_as_long_as_rsync_talks(pair: Mirror, quiet: bool) -> None:
    ended = pair.call("-aH", "--delete", *(["--quiet"] if quiet else []))
    assert ended.code == 0, ended
    assert ("lead out of the tree" in ended.out + ended.err) is not quiet


def test_a_dry_run_changes_nothing_and_says_so(pair: Mirror) -> None:
    ended, real = pair.call("-aHn", "--delete", "-v"), pair.real("-aHn", "--delete", "-v")
    assert (ended.code, real.code) == (0, 0)
    assert sorted(os.listdir(pair.down.dest)) == []
    assert ended.out.endswith("(DRY RUN)\n")
    assert closing(ended.out) == closing(real.out)
    names = set(ended.out.splitlines()[1:-3])
    assert "pool/19" in names
    assert "pool/" in names


def test_huai_itself_agrees_with_the_tree(pair: Mirror) -> None:
    pair.call("-aH", "--delete")
    change(pair)
    pair.call("-aH", "--delete")
    assert_equal(pair.up, pair.down)


def damage(tree: Path) -> None:
    """What may happen to a tree below directories in which nothing changes upstream."""
    for number in range(10, 20):
        (tree / f"pool/{number}").unlink()
    (tree / "dists/Release").write_text("broken")
    (tree / "pool/6").chmod(0o600)
    (tree / "pool/own").write_text("a stranger")
    (tree / "link").unlink()


def test_local_damage_is_mended_as_by_rsync(pair: Mirror) -> None:
    """Each day, though nothing is new upstream; huai-rsync says what, as rsync does."""
    options = ("-aH", "--delete", "-v")
    assert (pair.call(*options).code, pair.real(*options).code) == (0, 0)
    for aged in (False, True):
        for tree in (pair.down.dest, pair.twin):
            damage(tree)
        if aged:
            memory = pair.down.state_file.parent / "rsync.json"
            said = json.loads(memory.read_bytes())
            memory.write_text(json.dumps({**said, "compared": said["compared"] - 86_400}))
            ended, real = pair.call(*options), pair.real(*options)
        else:
            assert names(pair.call(*options)) == ["receiving incremental file list"]
            assert not (pair.down.dest / "link").is_symlink()
            each = {"HUAI_RSYNC_COMPARE": "0"}
            ended, real = pair.call(*options, environment=each), pair.real(*options)
        assert names(ended) == names(real)
        assert "deleting pool/own" in names(ended)
        assert picture(pair.down.dest) == picture(pair.twin)


def test_a_disk_that_is_not_mounted_is_no_damage(pair: Mirror) -> None:
    assert pair.call("-aH", "--delete").code == 0
    pair.down.dest.rename(pair.down.dest.with_name("unmounted"))
    pair.down.dest.mkdir()
    settings = {"HUAI_RSYNC_COMPARE": "0", "HUAI_RSYNC_FALLBACK": "no"}
    ended = pair.call("-aH", "--delete", environment=settings)
    assert ended.code == 3
    assert "holds nothing of what was synced" in ended.err
    assert os.listdir(pair.down.dest) == []


def test_a_span_that_is_none_is_told(pair: Mirror) -> None:
    settings = {"HUAI_RSYNC_COMPARE": "daily", "HUAI_RSYNC_FALLBACK": "no"}
    ended = pair.call("-aH", "--delete", environment=settings)
    assert (ended.code, "HUAI_RSYNC_COMPARE" in ended.err) == (1, True)


def test_a_filter_leaves_the_number_of_files_as_rsync_counts_it(pair: Mirror) -> None:
    pair.down.configure(filter=("- /pool/1*", "- /new/"))
    options = ("-aH", "--delete", "--stats", "--exclude=/pool/1*", "--exclude=/new/")
    for update in (lambda _: None, change, lambda _: None, grow, unlink):
        update(pair)
        ended, real = pair.call(*options), pair.real(*options)
        assert (ended.code, "the real rsync" in ended.err) == (0, False)
        for name in ("Number of files", "Number of created files", "Number of deleted files"):
            assert figure(ended.out, name) == figure(real.out, name)


def test_symlinks_that_nobody_upstream_has_are_counted_as_symlinks(pair: Mirror) -> None:
    options = ("-aH", "--delete", "--stats")
    for tree in (pair.down.dest, pair.twin):
        (tree / "extraneous").symlink_to("0")
        (tree / "pool/dir").mkdir(parents=True)
        (tree / "pool/dir/link").symlink_to("0")
    for _ in range(2):
        ended, real = pair.call(*options), pair.real(*options)
        assert (ended.code, "the real rsync" in ended.err) == (0, False)
        name = "Number of deleted files"
        assert figure(ended.out, name) == figure(real.out, name)


def unlink(found: Mirror) -> None:
    """A symlink goes."""
    found.up.at(b"pool/second/link").unlink()
    found.up.commit()


def grow(found: Mirror) -> None:
    """More of each kind, a part of it left out."""
    found.up.many(b"pool/1st", 3)
    found.up.many(b"pool/second", 3)
    found.up.at(b"pool/second/link").symlink_to("0")
    found.up.at(b"pool/6").unlink()
    found.up.commit()


def test_modes_are_kept_only_if_asked_for(pair: Mirror) -> None:
    """As rsync does: set-id bits with --perms, the own ones and the umask without."""
    assert (pair.call("-rlt", "--delete").code, pair.real("-rlt", "--delete").code) == (0, 0)
    pair.up.put(b"pool/6", b"changed", mode=0o6755)
    pair.up.put(b"pool/open", b"new", mode=0o4777)
    pair.up.at(b"dists").chmod(0o777)
    pair.up.commit()
    for option in ("-rlt", "-rltp", "-rlt"):
        assert (pair.call(option, "--delete").code, pair.real(option, "--delete").code) == (0, 0)
        assert picture(pair.down.dest, links=False) == picture(pair.twin, links=False), option
    assert pair.call("-rltpH", "--delete", "--chmod=D755,F644").err == ""
    assert {path.stat().st_mode & 0o7777 for path in pair.down.dest.glob("pool/*")} == {0o644}
    assert (pair.down.dest / "dists").stat().st_mode & 0o7777 == 0o755
