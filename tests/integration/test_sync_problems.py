"""One path that makes trouble costs that path, and what depends on it; the rest goes on."""

import contextlib
import os
import shutil
from pathlib import Path

import pytest

from huai_client.plan.prepared import PreparedPlan
from huai_schema.errors import ExitCode
from tests.support.rsyncd import rsync_daemon
from tests.support.upstream import T0, Downstream, Pair, Site, Upstream, assert_equal

RSYNC = shutil.which("rsync")


@pytest.fixture(name="pair")
def synced_pair(place: Site) -> Pair:
    """Two repositories and a plain directory, in step."""
    up = place.upstream()
    for top in (b"one", b"two"):
        up.put(top + b"/pool/a", b"a")
        up.put(top + b"/pool/goes", b"goes")
        up.put(top + b"/dists/s/Packages", b"old index")
        up.put(top + b"/dists/s/Release", b"old pointer")
    up.put(b"d/old", b"old")
    up.put(b"plain/goes", b"goes")
    return up, place.synced_downstream(up)


def update(up: Upstream) -> None:
    for top in (b"one", b"two"):
        up.put(top + b"/pool/b", b"b")
        up.at(top + b"/pool/goes").unlink()
        up.put(top + b"/dists/s/Packages", b"new index", mtime=5)
        up.put(top + b"/dists/s/Release", b"new pointer", mtime=5)
    up.at(b"plain/goes").unlink()
    up.put(b"plain/new", b"new")


def is_done(down: Downstream, top: str) -> bool:
    """Return True if a repository is wholly new; it must be wholly old otherwise."""
    done = not (down.dest / top / "pool/goes").exists()
    for name in ("Packages", "Release"):
        new = (down.dest / top / "dists/s" / name).read_bytes().startswith(b"new")
        assert new == done
    return done


def only_one_is_left(down: Downstream) -> bool:
    """Return True if the repository `one` alone is not done."""
    plain = down.dest / "plain"
    plain_is_done = (plain / "new").exists() and not (plain / "goes").exists()
    return plain_is_done and is_done(down, "two") and not is_done(down, "one")


def finished(up: Upstream, down: Downstream) -> None:
    """Sync once more, after what was in the way is gone; no tree is walked."""
    assert down.state.applied is not None
    assert down.state.attempted != ()
    down.synced()
    assert_equal(up, down)


@pytest.mark.parametrize("becomes", ["file", "symlink"])
def test_an_extraneous_file_below_what_becomes_a_leaf(pair: Pair, becomes: str) -> None:
    up, down = pair
    (down.dest / "d/unknown").write_text("mine")
    up.at(b"d/old").unlink()
    up.at(b"d").rmdir()
    if becomes == "file":
        up.put(b"d", b"now a file")
    else:
        up.at(b"d").symlink_to("plain")
    update(up)
    up.commit()
    for _ in range(2):
        ended = down.sync()
        assert ended.code == 23
        assert "d/unknown" in ended.err
        assert "--adopt --delete-extraneous" in ended.err
        assert sorted(os.listdir(down.dest / "d")) == ["old", "unknown"]
        assert is_done(down, "one")
        assert is_done(down, "two")
        assert sorted(os.listdir(down.dest / "plain")) == ["new"]
    (down.dest / "d/unknown").unlink()
    up.put(b"one/a\\*b", b"a name that rsync may take for a pattern")
    up.put(b"two/a\\[b?", b"odd")
    up.commit()
    finished(up, down)


def test_a_directory_made_here_where_a_file_goes(pair: Pair) -> None:
    up, down = pair
    (down.dest / "one/pool/b/of/mine").mkdir(parents=True)
    update(up)
    up.commit()
    ended = down.sync()
    assert ended.code == 23
    assert "one/pool/b" in ended.err
    assert "--adopt --delete-extraneous" in ended.err
    assert only_one_is_left(down)
    assert (down.dest / "one/pool/b/of/mine").is_dir()
    result = down.synced("--adopt", "--delete-extraneous")
    assert result["summary"]["fetches"] < 5
    assert_equal(up, down)


def test_a_file_that_vanished_holds_up_its_repository_alone(pair: Pair) -> None:
    up, down = pair
    update(up)
    up.commit()
    hidden = up.at(b"one/pool/b").rename(up.at(b"hidden"))
    assert down.sync().code == 24
    assert only_one_is_left(down)
    hidden.rename(up.at(b"one/pool/b"))
    up.commit()  # the times of the directories
    finished(up, down)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can serve as another user")
def test_a_file_that_the_daemon_may_not_read_is_not_called_vanished(pair: Pair) -> None:
    up, down = pair
    update(up)
    secret = up.put(b"one/pool/se cr\xe9t\n", b"secret", mode=0)
    up.commit()
    with rsync_daemon({"m": up.tree}, uid="nobody", gid="nogroup") as url:  # prose: a user
        down.configure(content_urls=(f"{url}/m",))
        ended = down.sync("--json")
        assert ended.code == 23, ended
        assert "permission denied at the upstream" in ended.err
        assert "vanished" not in ended.err
        assert ended.events("sync")[0]["refused"] == 1
        assert only_one_is_left(down)
        secret.chmod(0o644)
        up.commit()
        finished(up, down)


def test_rsync_gives_up_over_one_name(pair: Pair, tmp_path: Path) -> None:
    """As rsync 3.2.5 and newer do without --trust-sender, with some names."""
    up, down = pair
    # The stand-in writes what it is asked for there; a log is what a confined rsync may write.
    down.configure(rsync_options=(f"--log-file={tmp_path}/log",))
    update(up)
    up.many(b"more", 50)
    up.put(b"one/culprit", b"odd")
    up.commit()
    program = tmp_path / "rsync"
    program.write_text(
        "#!/bin/sh\n"
        f'case "$*" in *--files-from*) ;; *) exec {RSYNC} "$@" ;; esac\n'
        f"cat > {tmp_path}/names.$$\n"
        f"echo run >> {tmp_path}/runs\n"
        f"if grep -qaF one/culprit {tmp_path}/names.$$; then\n"
        '  echo "ERROR: rejecting unrequested file-list name: one/culprit" >&2; exit 4\n'
        "fi\n"
        f'exec {RSYNC} "$@" < {tmp_path}/names.$$\n'
    )
    program.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    ended = down.process("sync", down.name, environment={"PATH": path})
    assert ended.code == 23, ended
    assert "one/culprit" in ended.err
    assert "rejecting unrequested" in ended.err
    assert only_one_is_left(down)
    assert len(list((down.dest / "more").iterdir())) == 50
    assert len((tmp_path / "runs").read_text().split()) < 20
    finished(up, down)


def test_a_wrong_content_url_is_named(place: Site) -> None:
    up, other = place.upstream(), place.upstream()
    up.many(b"a", 30)
    other.put(b"x", b"x")
    up.commit()
    other.commit()
    down = place.downstream(up)
    with rsync_daemon({"m": other.tree}) as url:
        down.configure(content_urls=(f"{url}/m",))
        ended = down.sync()
    assert ended.code == 23
    assert "check the content URL" in ended.err
    assert "none of the 30 files" in ended.err
    assert ended.err.count("vanished upstream") == 20
    assert "and 10 more like the last one" in ended.err


def test_each_mismatch_is_reported_once_and_not_all(place: Site) -> None:
    up = place.upstream()
    up.many(b"a", 60)
    up.commit()
    for path in up.at(b"a").iterdir():
        path.write_bytes(b"!" * 10)
        os.utime(path, ns=(T0, T0))
    down = place.downstream(up)
    ended = down.sync()
    assert ended.code == 48
    assert ended.err.count("the content does not match the metadata") == 20
    assert ended.err.count("a/1\n") + ended.err.count("a/1:") <= 1
    assert "and 40 more like the last one" in ended.err


def test_a_top_directory_that_is_gone_is_not_an_unmounted_disk(place: Site) -> None:
    up = place.upstream()
    for name in (b"a", b"b", b"c"):
        up.many(name, 120)
    down = place.synced_downstream(up)
    for path in (down.dest / "a").iterdir():
        path.unlink()
    (down.dest / "a").rmdir()
    assert down.verify().code == 47
    up.put(b"b/new", b"new")
    up.commit()
    down.synced()
    assert down.verify("--repair").code in (0, 47)
    assert_equal(up, down)
    # All of it gone is another matter.
    down.dest.rename(down.dest.with_name("elsewhere"))
    down.dest.mkdir()
    assert down.verify().code == 52
    up.put(b"b/new", b"newer")
    up.commit()
    assert down.sync().code == 52


def test_a_directory_that_is_moved_away_during_the_transfer_is_not_touched(place: Site) -> None:
    up = place.upstream()
    up.put(b"goes/a", b"a")
    up.put(b"pool/a", b"a")
    up.put(b"copied/a", b"a")
    down = place.synced_downstream(up)
    shutil.rmtree(up.at(b"goes"))
    up.put(b"pool/b", b"b")
    up.put(b"copied/b", b"b")
    up.commit()
    archive = place.folder / "archive"

    def save(_: PreparedPlan) -> None:
        archive.mkdir()
        for name in ("goes", "pool", "copied"):
            (down.dest / name).rename(archive / name)
        shutil.copytree(archive / "copied", down.dest / "copied")

    result = down.observed(save)
    assert result.exit_code is ExitCode.PARTIAL
    assert result.report is not None
    assert [each.path for each in result.report.problems] == [b"pool/b"]
    assert {os.fspath(path.relative_to(archive)) for path in archive.glob("*/*")} == {
        "goes/a",
        "pool/a",
        "copied/a",
    }
    assert (down.dest / "copied/b").read_bytes() == b"b"


def test_a_tree_deeper_than_pythons_stack(place: Site) -> None:
    up = place.upstream()
    deep = b"/".join([b"d"] * 600)
    up.put(b"top", b"top")
    folder = os.open(up.tree, os.O_RDONLY)
    for name in deep.split(b"/"):
        os.mkdir(name, dir_fd=folder)
        lower = os.open(name, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = lower
    try:
        down = place.downstream(up)
        for content in (b"one", b"other"):
            # A symlink: rsync would take its time over such a path.
            with contextlib.suppress(FileNotFoundError):
                os.unlink(b"f", dir_fd=folder)
            os.symlink(content, b"f", dir_fd=folder)
            up.commit()
            down.synced()
        assert down.run("why", down.name, os.fsdecode(deep + b"/f")).code == 0
    finally:
        os.close(folder)
    assert_equal(up, down)
