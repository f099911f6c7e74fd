"""An attr tree belongs to one state root and one path: no other may change it."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from huai_schema.errors import ExitCode
from huai_server.config import load as load_module
from huai_server.config.load import load
from huai_server.fallback.redirect import preload_library
from tests.support.attr_trees import Seen, list_entries
from tests.support.committing import NAME, SECONDS, run_server
from tests.support.fallback_service import configure, service
from tests.support.processes import until
from tests.support.rsyncd import rsync_daemon


@pytest.fixture
def folder(short_path: Path) -> Path:
    """The fallback's folder, which two state roots share."""
    short_path.chmod(0o755)
    return short_path / "fallback"


def make_root(place: Path, files: int) -> Path:
    """Commit a module of so many files."""
    tree = place.with_name(f"{place.name}-tree")
    tree.mkdir()
    for number in range(files):
        (tree / f"f{number}").write_text("x" * number)
    configure(place, tree)
    run(place, "commit", NAME)
    return place


def read_tree(folder: Path) -> Seen:
    """Return the attr tree, and the other files of the module except the lock."""
    paths = list_entries(folder / NAME)
    return {name: paths[name] for name in paths if name not in (b".", b"lock")}


def run(root: Path, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = run_server(root, *arguments)
    assert done.returncode == code, (arguments, done)
    return done


def list_module(url: str) -> int:
    """Return rsync's exit code."""
    done = subprocess.run(["rsync", url], capture_output=True, timeout=SECONDS, check=False)
    return done.returncode


def rename_module(root: Path) -> None:
    new = root / "new"
    text = (root / "server.toml").read_text()
    new.write_text(text.replace(f"[modules.{NAME}]", "[modules.renamed]"))
    new.replace(root / "server.toml")


@pytest.fixture
def ours(short_path: Path, folder: Path) -> Path:
    root = make_root(short_path / "ours", 20)
    run(root, "fallback", "build", NAME)
    assert (folder / NAME / "tree").is_symlink()
    return root


@pytest.fixture
def theirs(ours: Path) -> Path:
    """Another root, whose module has the same name, and a new file to commit."""
    root = make_root(ours.with_name("theirs"), 3)
    (root.with_name("theirs-tree") / "new").write_text("new")
    return root


def test_a_trial_with_another_root_deletes_nothing_downstream(ours: Path, theirs: Path) -> None:
    copy = ours.with_name("copy")
    path = ours.with_name("fallback") / NAME / ".redirected"
    with rsync_daemon({NAME: path}, preload=preload_library()) as url:
        command = ["rsync", "-a", "--delete", f"{url}/{NAME}/", f"{copy}/"]
        subprocess.run(command, timeout=SECONDS, check=True)
        run(theirs, "commit", NAME)
        subprocess.run(command, timeout=SECONDS, check=True)
    assert len(list(copy.iterdir())) == 20


def test_another_root_is_refused(ours: Path, theirs: Path, folder: Path) -> None:
    before = read_tree(folder)
    assert f"belongs to the state root {ours}" in run(theirs, "commit", NAME).stderr
    for command in (["build", NAME], ["build", "--rebuild", NAME], ["remove", NAME]):
        done = run(theirs, "fallback", *command, code=ExitCode.FALLBACK)
        assert f"huai-server --root {ours} fallback remove {NAME}" in done.stderr
    run(theirs, "fallback", "remove", "--all")
    conf = run_server(theirs, "fallback", "conf", "--no-test")
    assert f"[{NAME}]" not in conf.stdout
    assert f"left out: the attr tree belongs to {ours}" in conf.stderr
    with service(theirs) as running:
        assert f"belongs to the state root {ours}" in (ours.parent / "log").read_text()
        assert list_module(running.url) == 5
    run(theirs, "remove", NAME)
    assert read_tree(folder) == before
    run(ours, "fallback", "check", NAME)


def test_by_default_each_root_has_its_own_folder(ours: Path, theirs: Path) -> None:
    for root in (ours, theirs):
        text = (root / "server.toml").read_text()
        lines = [line for line in text.splitlines() if not line.startswith("folder")]
        (root / "server.toml").write_text("\n".join(lines))
        run(root, "fallback", "build", NAME)
        assert (root / "fallback" / NAME / "tree").is_symlink()
        assert run(root, "commit", NAME).stderr == ""


def test_only_the_packaged_root_uses_the_folder_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The machine may have a server.toml of its own.
    monkeypatch.setattr(load_module, "_PACKAGED_FILE", tmp_path / "server.toml")
    monkeypatch.setattr(load_module, "read_toml", lambda _: {})
    assert load(Path("/var/lib/huai")).fallback.folder == "/run/huai/fallback"


def test_the_attr_tree_of_a_root_that_is_gone_is_taken_over(
    ours: Path, theirs: Path, folder: Path
) -> None:
    ours.rename(ours.with_name("moved"))
    committed = run(theirs, "commit", NAME)
    assert "which is gone: run huai-server fallback build" in committed.stderr
    run(theirs, "fallback", "build", NAME)
    assert (folder / NAME / "root").readlink() == theirs
    run(theirs, "fallback", "check", NAME)
    theirs.rename(theirs.with_name("moved-too"))
    ours.with_name("moved").rename(ours)
    run(ours, "fallback", "remove", NAME)
    assert not (folder / NAME).exists()


def test_another_path_is_taken_up_only_if_asked_for(ours: Path, folder: Path) -> None:
    other = ours.with_name("other")
    other.mkdir()
    (other / "only").touch()
    configure(ours, other)
    before = read_tree(folder)
    for arguments in (["commit", NAME], ["fallback", "build", NAME]):
        done = run(ours, *arguments, code=ExitCode.FALLBACK)
        assert f"lists {ours.with_name('ours-tree')}" in done.stderr
        assert "--rebuild" in done.stderr
    assert read_tree(folder) == before
    run(ours, "fallback", "build", "--rebuild", NAME)
    run(ours, "fallback", "check", NAME)
    assert [path.name for path in (folder / NAME / "tree").iterdir()] == ["only"]


def test_a_root_is_the_same_by_any_of_its_names(ours: Path, folder: Path) -> None:
    linked = ours.with_name("linked")
    linked.symlink_to(ours)
    (ours.with_name("ours-tree") / "new").write_text("new")
    assert "attr tree updated" in run(linked, "commit", NAME).stdout
    rename_module(ours)
    assert f"{NAME}: attr tree removed" in run(ours, "commit", "renamed").stderr
    assert not (folder / NAME).exists()


def test_a_service_that_cannot_listen_makes_no_attr_tree(short_path: Path, folder: Path) -> None:
    root = make_root(short_path / "root", 3)
    other = short_path / "other"
    other.mkdir()
    with rsync_daemon({"m": other}) as url:
        configure(root, short_path / "root-tree", port=int(url.rpartition(":")[2]))
        done = run(root, "fallback", "serve", code=ExitCode.CONFIG)
    assert f"{url.rpartition('/')[2]}" in done.stderr
    assert "in use" in done.stderr
    assert not (folder / NAME).exists()
    (short_path / "root-tree/new").touch()
    assert "attr tree" not in run(root, "commit", NAME).stdout


def test_remove_leaves_readers_alone_and_nothing_behind(ours: Path, folder: Path) -> None:
    (ours.with_name("ours-tree") / "big").write_bytes(bytes(2_000_000))
    run(ours, "commit", NAME)
    path, copy = folder / NAME / ".redirected", ours.with_name("copy")
    with rsync_daemon({NAME: path}, preload=preload_library()) as url:
        slow = ["rsync", "-a", "--bwlimit=500", f"{url}/{NAME}/big", f"{copy}/"]
        client = subprocess.Popen(slow)
        until(lambda: any(copy.glob(".big.*")))
        done = run(ours, "fallback", "remove", NAME, "--json", code=ExitCode.FALLBACK)
        event = json.loads(done.stdout)
        assert (event["existed"], event["gone"]) == (True, False)
        assert list_module(f"{url}/{NAME}/") == 5
        assert client.wait(SECONDS) == 0
    assert (copy / "big").read_bytes() == bytes(2_000_000)
    run(ours, "fallback", "remove", NAME)
    assert not (folder / NAME).exists()
    assert "no attr tree" in run(ours, "fallback", "remove", NAME).stdout


def test_a_service_removes_the_attr_tree_of_a_renamed_module(ours: Path, folder: Path) -> None:
    shutil.copytree(ours / "modules" / NAME, ours / "modules" / "renamed")
    with service(ours):
        rename_module(ours)
        until(lambda: not (folder / NAME).exists())
        until((folder / "renamed" / "tree").exists)


def test_remove_needs_the_name_of_a_module(ours: Path, subtests: pytest.Subtests) -> None:
    for arguments in (["remove"], ["remove", "--all", NAME], ["remove", "../x"], ["remove", ""]):
        with subtests.test(arguments=arguments):
            done = run_server(ours, "fallback", *arguments)
            assert done.returncode in (ExitCode.USAGE, ExitCode.UNKNOWN_MODULE)


def test_names_that_rsync_cannot_tell_apart_are_reported_before_they_matter(ours: Path) -> None:
    added = run(ours, "add", NAME.upper(), str(ours.with_name("ours-tree")))
    assert "cannot distinguish the module" in added.stderr
    built = run(ours, "fallback", "build", NAME, code=ExitCode.CONFIG)
    assert "cannot distinguish the module" in built.stderr
    other = ours.with_name("other")
    other.mkdir()
    (other / "file").touch()
    assert run(ours, "add", "apart", str(other)).stderr == ""
    run(ours, "commit", "apart")
    run(ours, "fallback", "build", "apart")
    conf = run_server(ours, "fallback", "conf", "--no-test")
    assert "[apart]" in conf.stdout
    assert f"[{NAME}]" not in conf.stdout
    assert conf.stderr.count("cannot distinguish the module") == 2


def test_a_new_module_is_served_soon_after_its_first_commit(ours: Path) -> None:
    tree = ours.with_name("fresh")
    tree.mkdir()
    (tree / "file").write_text("x")
    with service(ours) as running:
        configure(ours, ours.with_name("ours-tree"), modules=f'[modules.fresh]\npath = "{tree}"')
        until(lambda: "has no commit to list" in (ours.parent / "log").read_text())
        run(ours, "commit", "fresh")
        until(lambda: list_module(running.url.replace(f"/{NAME}/", "/fresh/")) == 0)
