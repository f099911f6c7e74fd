"""The trash of a sync, and the way back."""

import os
import shutil
from pathlib import Path

import pytest

from tests.support.counting_proxy import counting
from tests.support.local_trees import fingerprint
from tests.support.processes import run_program
from tests.support.rsyncd import rsync_daemon
from tests.support.upstream import T0, Downstream, Site, Upstream, rsync_differences

TRASH = ".~tmp~/huai-trash"
Pair = tuple[Upstream, Upstream, Downstream]


def first(up: Upstream) -> None:
    up.many(b"moves", 150)
    up.many(b"pool", 20)
    up.put(b"dists/InRelease", b"pointer 1")
    up.put(b"becomes-folder", b"1")
    up.put(b"becomes-file/a/b", b"1")
    up.put(b"goes/deep/er", b"1", mode=0o600)
    up.put(b"touched", b"the same")
    up.put(b"h/one", b"linked")
    up.at(b"h/two").hardlink_to(up.at(b"h/one"))
    up.put(b"closed/file", b"1")
    up.at(b"closed").chmod(0o555)
    os.symlink("pool", up.at(b"link"))


def second(up: Upstream) -> None:
    up.at(b"moves").rename(up.at(b"moved"))
    up.put(b"moved/1", b"rewritten 2", mtime=T0 + 5)
    up.at(b"moved/2").unlink()
    up.put(b"moved/new", b"2")
    up.at(b"becomes-folder").unlink()
    up.put(b"becomes-folder/x", b"2")
    shutil.rmtree(up.at(b"becomes-file"))
    up.put(b"becomes-file", b"2")
    shutil.rmtree(up.at(b"goes"))
    up.at(b"pool/3").rename(up.at(b"elsewhere"))
    up.put(b"pool/1", b"rewritten 2", mtime=T0 + 5)
    up.put(b"new", b"2")
    up.put(b"touched", b"the same", mtime=T0 + 5)
    up.at(b"touched").chmod(0o640)
    up.at(b"h/one").unlink()
    up.put(b"h/one", b"alone", mtime=T0 + 5)
    up.put(b"closed/file", b"22", mtime=T0 + 5)
    up.put(b"dists/InRelease", b"pointer 2", mtime=T0 + 5)
    up.at(b"link").unlink()
    os.symlink("h", up.at(b"link"))


@pytest.fixture(name="pair")
def two_commits(
    request: pytest.FixtureRequest, place: Site
) -> tuple[Upstream, Upstream, Downstream]:
    """The upstream, a copy of it as it was at its first commit, and a downstream at its second."""
    up = place.upstream(digest=getattr(request, "param", "now"))
    first(up)
    down = place.synced_downstream(up, trash="7d")
    assert not (down.dest / ".~tmp~").exists(), "the first sync throws nothing away"
    before = Upstream(up.name, up.tree.with_name(f"{up.name}-before"), up.root)
    shutil.copytree(up.tree, before.tree, symlinks=True, copy_function=copy)
    relink(before)
    for path in up.tree.rglob("*"):
        if path.is_dir() and not path.is_symlink():
            same_times(path, before.tree / path.relative_to(up.tree))
    same_times(up.tree, before.tree)
    second(up)
    up.commit()
    down.synced()
    return up, before, down


def copy(source: str, target: str) -> str:
    return str(shutil.copy2(source, target, follow_symlinks=False))


def relink(before: Upstream) -> None:
    before.at(b"h/two").unlink()
    before.at(b"h/two").hardlink_to(before.at(b"h/one"))


def same_times(source: Path, target: Path) -> None:
    status = source.stat()
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def batches(down: Downstream) -> list[Path]:
    return sorted((down.dest / TRASH).glob("*"))


def age(down: Downstream, days: int) -> None:
    """Make all that is in the trash so many days older."""
    for batch in batches(down):
        serial, when = batch.name.split("-", 1)
        batch.rename(batch.with_name(f"{serial}-{int(when[:4]) - 1}{when[4:]}"))
    text, since = down.state_file.read_text(), down.state.trash
    text = text.replace(f'"trash": {since}', f'"trash": {since - 86400 * days}')
    down.state_file.write_text(text)


def visible(down: Downstream) -> list[object]:
    """All that others see of the tree."""
    return [row for row in fingerprint(down.dest) if b"/.~tmp~" not in row[0]]


@pytest.mark.parametrize("pair", ["now", "off"], indirect=True)
def test_back_to_what_was_before(place: Site, pair: Pair) -> None:
    up, before, down = pair
    newest = down.state.applied
    assert rsync_differences(up, down) == ""
    with counting(place.url) as counted:
        down.configure(url=counted.url, content_urls=("rsync://127.0.0.1:1/none",))
        ended = down.run("undo", down.name)
    assert ended.code == 0, ended
    assert counted.requests == [], "an undo needs no upstream"
    down.configure(url=place.url, content_urls=())
    assert rsync_differences(before, down) == ""
    assert down.verify("--content").code == 0
    assert down.state.applied != newest
    assert down.state.attempted == ()
    assert "  undo  " in down.run("log", down.name).out
    assert "held since an undo" in ended.err
    tree = fingerprint(down.dest)
    again = down.run("undo", down.name, "--json")
    assert (again.code, "undone already" in again.err) == (47, True), "there is one step back"
    assert fingerprint(down.dest) == tree


def test_shown_and_not_done(pair: Pair) -> None:
    up, before, down = pair
    tree, state = visible(down), down.state
    ended = down.run("undo", down.name, "--dry-run", "--json")
    assert ended.code == 0, ended
    operations = {(event["operation"], event["path"]) for event in ended.events("operation")}
    assert {("move", "moves"), ("reuse", "pool/1"), ("delete", "new")} <= operations
    assert (visible(down), down.state) == (tree, state)
    assert rsync_differences(up, down) == ""
    assert down.run("undo", down.name).code == 0
    assert rsync_differences(before, down) == ""


def test_held_until_released(place: Site, pair: Pair) -> None:
    up, before, down = pair
    newest = down.state.applied
    down.run("undo", down.name)
    up.put(b"even newer", b"3")
    up.commit()
    with counting(place.url) as counted:
        down.configure(url=counted.url)
        ended = down.sync()
    down.configure(url=place.url)
    assert (ended.code, counted.requests) == (0, [])
    assert "held since an undo" in ended.err
    assert "held since an undo" in down.run("status").out
    assert down.run("status", "--json").events("module")[0]["held"] == newest
    assert down.sync("--json").events("held")[0]["undone"] == newest
    assert rsync_differences(before, down) == ""
    assert down.sync("--unhold").code == 0
    assert rsync_differences(up, down) == ""
    assert "held" not in down.run("status").out
    assert down.verify("--content").code == 0
    down.synced()


def test_released_to_what_was_undone(place: Site, pair: Pair) -> None:
    """Also while the upstream is away."""
    up, _, down = pair
    down.run("undo", down.name)
    assert down.run("plan", down.name).code == 0
    assert down.synced("--unhold")["changed"]
    assert rsync_differences(up, down) == ""
    assert down.run("undo", down.name).code == 0
    down.configure(url="http://127.0.0.1:1")
    assert down.sync("--unhold").code == 10
    down.configure(url=place.url)
    assert down.sync().code == 0
    assert rsync_differences(up, down) == ""
    down.configure(trash="0")
    down.synced()
    assert not (down.dest / ".~tmp~").exists(), "a trash that is not configured any more goes"
    assert down.verify().code == 0


def test_nothing_to_undo(place: Site) -> None:
    up = place.upstream()
    up.put(b"a", b"1")
    up.commit()
    down = place.downstream(up)
    assert down.run("undo", down.name).code == 47
    assert not down.repository.exists()
    down.synced()
    up.put(b"a", b"2", mtime=5)
    up.commit()
    down.synced()
    assert not (down.dest / ".~tmp~").exists()
    ended = down.run("undo", down.name)
    assert ended.code == 47
    assert 'trash = "7d"' in ended.err
    assert (down.dest / "a").read_bytes() == b"2"


@pytest.mark.parametrize("damage", ["gone", "changed"])
def test_the_trash_lacks_something(pair: Pair, damage: str) -> None:
    up, _, down = pair
    (lost,) = (path for batch in batches(down) for path in batch.glob("pool/1"))
    if damage == "gone":
        lost.unlink()
    else:
        lost.write_bytes(b"x" * lost.stat().st_size)
    before, state = visible(down), down.state
    ended = down.run("undo", down.name)
    assert ended.code == 23
    assert "1 file that was there before is not in the trash any more" in ended.err
    assert "pool/1" in ended.err
    assert (visible(down), down.state) == (before, state)
    assert rsync_differences(up, down) == ""
    assert down.verify("--content").code == 0
    assert down.synced()["changed"] is False


def test_what_the_trash_held_too_long_goes(pair: Pair) -> None:
    up, _, down = pair
    assert batches(down)
    assert down.synced()["changed"] is False
    assert batches(down)
    age(down, 365)
    down.synced()
    assert batches(down) == []
    assert down.state.trash == 0
    assert not (down.dest / ".~tmp~").exists()
    assert down.verify().code == 0
    assert rsync_differences(up, down) == ""
    assert down.run("undo", down.name).code == 23


def test_what_waits_is_not_in_the_trash_yet(place: Site) -> None:
    up = place.upstream()
    up.many(b"pool", 5)
    down = place.synced_downstream(up, trash="7d", delete_after="1h")
    up.at(b"pool/1").unlink()
    up.put(b"pool/new", b"2")
    up.commit()
    down.synced()
    assert not (down.dest / TRASH).exists()
    assert down.run("undo", down.name).code == 0
    # What the undone sync brought waits in its turn.
    assert {path.name for path in (down.dest / "pool").iterdir()} == {*"01234", "new"}
    assert down.verify("--content").code == 0
    assert ", 1 delayed deletion" in down.run("status").out
    down.configure(delete_after="0")
    assert down.synced()["done"]["removed"] == 1
    assert "held" in down.run("status").out
    assert [path.name for batch in batches(down) for path in batch.rglob("new")] == ["new"]


@pytest.mark.parametrize("digest", ["now", "off"])
def test_a_directory_that_was_renamed_with_a_symlink_left_behind_is_restored(
    place: Site, digest: str
) -> None:
    """Also a file of it whose deletion is delayed."""
    up = place.upstream(digest=digest)
    up.many(b"moves", 150)
    down = place.synced_downstream(up, trash="7d", delete_after="7d")
    before = [(down.dest / name).read_bytes() for name in ("moves/7", "moves/8")]
    up.at(b"moves").rename(up.at(b"moved"))
    up.put(b"moved/7", b"rewritten 2", mtime=T0 + 5)
    up.at(b"moved/8").unlink()
    up.commit()
    assert down.synced()["summary"]["moves"] == 1
    assert (down.dest / "moves").is_symlink()
    ended = down.run("undo", down.name)
    assert ended.code == 0, ended
    assert [(down.dest / name).read_bytes() for name in ("moves/7", "moves/8")] == before
    assert down.verify("--content").code == 0


def test_an_interrupted_sync_is_undone_whatever_it_brought(place: Site) -> None:
    up = place.upstream()
    up.put(b"a", b"a")
    down = place.synced_downstream(up, trash="7d", max_delete_in={"/*": "10%"})
    up.many(b"b", 1100, size=1)
    up.put(b"c/never", b"never")
    up.commit()
    up.at(b"c/never").unlink()
    assert down.sync().code == 24
    assert (down.dest / "b/7").exists()
    ended = down.run("undo", down.name)
    assert ended.code == 0, ended
    assert not (down.dest / "b").exists()


def test_extraneous_files_go_to_the_trash_too(pair: Pair) -> None:
    up, _, down = pair
    (down.dest / "mine/deep").mkdir(parents=True)
    (down.dest / "mine/deep/file").write_text("precious")
    os.mkfifo(down.dest / "mine/fifo")
    assert down.verify("--repair", "--delete-extraneous").code == 0
    assert rsync_differences(up, down) == ""
    (trashed,) = (path for batch in batches(down) for path in batch.glob("mine/deep/file"))
    assert trashed.read_text() == "precious"


def test_the_trash_is_never_mirrored(place: Site, pair: Pair) -> None:
    up, _, down = pair
    (down.dest / TRASH / "mine").write_text("not a batch")
    middle = place.upstream(path=str(down.dest))
    leaf = place.synced_downstream(middle, content_urls=(str(down.dest),))
    assert not (leaf.dest / ".~tmp~").exists()
    assert rsync_differences(up, leaf) == ""


def test_a_daemon_with_the_usual_settings_hides_the_trash(place: Site) -> None:
    up = place.upstream()
    up.put(b"gone", b"1")
    up.put(b"stays", b"1")
    down = place.synced_downstream(up, trash="1h")
    up.at(b"gone").unlink()
    up.commit()
    down.synced()
    assert len(batches(down)) == 1
    user = {"uid": "nobody", "gid": "nogroup", "ignore_nonreadable": "yes"}  # prose: a user
    for customs in ({"exclude": ".~tmp~/"}, *([user] if os.geteuid() == 0 else [])):
        with rsync_daemon({"tree": down.dest}, program="rsync", preload=None, **customs) as url:
            listed = run_program("rsync", "-r", f"{url}/tree/", check=True)
        names = [line.split()[-1] for line in listed.stdout.splitlines()]
        assert names == [".", "stays"], customs


def test_settings_that_an_undo_heeds(place: Site) -> None:
    """Limits do not hinder it, protected paths stay, and the filter is that of then."""
    up = place.upstream()
    up.many(b"pool", 3)
    for name in (b"trace/my.host", b"a.txt", b"a.iso"):
        up.put(name, b"1")
    down = place.synced_downstream(up, trash="1h", max_delete="1", max_delete_in={"/pool": 0})
    up.many(b"pool/more", 9)
    for name in (b"trace/my.host", b"a.txt"):
        up.put(name, b"22", mtime=T0 + 5)
    up.commit()
    down.configure(filter=("- *.iso",))
    down.synced()
    assert not (down.dest / "a.iso").exists()
    down.configure(protect=("/trace/my.host",))
    assert down.run("undo", down.name).code == 0
    assert not (down.dest / "pool/more").exists()
    contents = {name: (down.dest / name).read_bytes() for name in ("a.iso", "a.txt")}
    assert contents == {"a.iso": b"1", "a.txt": b"1"}
    assert (down.dest / "trace/my.host").read_bytes() == b"22"
    assert down.verify("--content").code == 0
    assert down.synced("--unhold")["done"]["removed"] == 1
