"""An attr tree belongs to one state root and one path: no other may change it."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from huai_schema.errors import ExitCode
from huai_server.config import load as load_module
from huai_server.config.load import load
from tests.support.attr_trees import Seen, seen
from tests.support.committing import NAME, SECONDS, run_server
from tests.support.fallback_service import configure, service
from tests.support.processes import until
from tests.support.rsyncd import rsync_daemon


@pytest.fixture
def folder(short_path: Path) -> Path:
    """What two state roots share: their fallback's folder."""
    short_path.chmod(0o755)
    return short_path / "fallback"


def state_root(place: Path, files: int) -> Path:
    """One with a committed module of so many files."""
    tree = place.with_name(f"{place.name}-tree")
    tree.mkdir()
    for number in range(files):
        (tree / f"f{number}").write_text("x" * number)
    configure(place, tree)
    done = run_server(place, "commit", NAME)
    assert done.returncode == 0, done.stderr
    return place


def held(folder: Path) -> Seen:
    """The attr tree, and all beside it but the lock."""
    found = seen(folder / NAME)
    return {name: found[name] for name in found if name not in (b".", b"lock")}


@pytest.fixture
def ours(short_path: Path, folder: Path) -> Path:
    root = state_root(short_path / "ours", 20)
    assert run_server(root, "fallback", "build", NAME).returncode == 0
    assert (folder / NAME / "tree").is_symlink()
    return root


@pytest.fixture
def theirs(ours: Path) -> Path:
    """Another root, whose module has the same name."""
    root = state_root(ours.with_name("theirs"), 3)
    assert run_server(root, "commit", NAME).returncode == 0
    return root


def library() -> Path:
    from huai_server.fallback.redirect import preload_library

    return preload_library()


def test_a_trial_with_another_root_deletes_nothing_downstream(ours: Path, theirs: Path) -> None:
    copy = ours.with_name("copy")
    path = ours.with_name("fallback") / NAME / ".redirected"
    with rsync_daemon({NAME: path}, preload=library()) as url:

        def fetch() -> int:
            command = ["rsync", "-a", "--delete", f"{url}/{NAME}/", f"{copy}/"]
            return subprocess.run(command, timeout=SECONDS, check=False).returncode

        assert fetch() == 0
        (theirs.with_name("theirs-tree") / "new").write_text("new")
        assert run_server(theirs, "commit", NAME).returncode == 0
        assert fetch() == 0
    assert len(list(copy.iterdir())) == 20


def test_another_root_is_refused(ours: Path, theirs: Path, folder: Path) -> None:
    before = held(folder)
    (theirs.with_name("theirs-tree") / "new").write_text("new")
    committed = run_server(theirs, "commit", NAME)
    assert committed.returncode == 0
    assert f"belongs to the state root {ours}" in committed.stderr
    for command in (["build", NAME], ["build", "--rebuild", NAME], ["remove", NAME]):
        done = run_server(theirs, "fallback", *command)
        assert done.returncode == ExitCode.FALLBACK, (command, done.stdout)
        assert f"huai-server --root {ours} fallback remove {NAME}" in done.stderr
    assert run_server(theirs, "fallback", "remove", "--all").returncode == 0
    conf = run_server(theirs, "fallback", "conf", "--no-test")
    assert f"[{NAME}]" not in conf.stdout
    assert f"left out: the attr tree belongs to {ours}" in conf.stderr
    assert run_server(theirs, "remove", NAME).returncode == 0
    assert held(folder) == before
    assert run_server(ours, "fallback", "check", NAME).returncode == 0


def test_each_root_has_a_folder_of_its_own(ours: Path, theirs: Path) -> None:
    for root in (ours, theirs):
        text = (root / "server.toml").read_text()
        lines = [line for line in text.splitlines() if not line.startswith("folder")]
        (root / "server.toml").write_text("\n".join(lines))
        done = run_server(root, "fallback", "build", NAME)
        assert done.returncode == 0, done.stderr
        assert (root / "fallback" / NAME / "tree").is_symlink()
        again = run_server(root, "commit", NAME)
        assert (again.returncode, again.stderr) == (0, "")


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
    committed = run_server(theirs, "commit", NAME)
    assert "which is gone: run huai-server fallback build" in committed.stderr
    done = run_server(theirs, "fallback", "build", NAME)
    assert done.returncode == 0, done.stderr
    assert (folder / NAME / "root").readlink() == theirs
    assert run_server(theirs, "fallback", "check", NAME).returncode == 0
    theirs.rename(theirs.with_name("moved-too"))
    ours.with_name("moved").rename(ours)
    assert run_server(ours, "fallback", "remove", NAME).returncode == 0
    assert not (folder / NAME).exists()


def test_another_root_s_service_does_not_serve_it(ours: Path, theirs: Path, folder: Path) -> None:
    before = held(folder)
    with service(theirs) as running:
        log = (ours.parent / "log").read_text()
        assert f"belongs to the state root {ours}" in log
        listed = subprocess.run(
            ["rsync", running.url], capture_output=True, text=True, timeout=SECONDS, check=False
        )
        assert listed.returncode == 5
    assert held(folder) == before


def test_another_path_is_taken_up_only_if_asked_for(ours: Path, folder: Path) -> None:
    other = ours.with_name("other")
    other.mkdir()
    (other / "only").touch()
    configure(ours, other)
    before = held(folder)
    for arguments in (["commit", NAME], ["fallback", "build", NAME]):
        done = run_server(ours, *arguments)
        assert done.returncode == ExitCode.FALLBACK, done.stderr
        assert f"lists {ours.with_name('ours-tree')}" in done.stderr
        assert "--rebuild" in done.stderr
    assert held(folder) == before
    assert run_server(ours, "fallback", "build", "--rebuild", NAME).returncode == 0
    assert run_server(ours, "fallback", "check", NAME).returncode == 0
    assert [path.name for path in (folder / NAME / "tree").iterdir()] == ["only"]


def test_a_root_is_the_same_by_any_of_its_names(ours: Path) -> None:
    linked = ours.with_name("linked")
    linked.symlink_to(ours)
    (ours.with_name("ours-tree") / "new").write_text("new")
    assert "attr tree updated" in run_server(linked, "commit", NAME).stdout


def test_a_service_that_cannot_listen_makes_no_attr_tree(short_path: Path, folder: Path) -> None:
    root = state_root(short_path / "root", 3)
    other = short_path / "other"
    other.mkdir()
    with rsync_daemon({"m": other}) as url:
        configure(root, short_path / "root-tree", port=int(url.rpartition(":")[2]))
        assert run_server(root, "fallback", "serve").returncode == ExitCode.CONFIG
    assert not (folder / NAME).exists()
    (short_path / "root-tree/new").touch()
    assert "attr tree" not in run_server(root, "commit", NAME).stdout


def slow_reader(url: str, place: Path) -> "subprocess.Popen[bytes]":
    """One that is in the middle of a file when this returns."""
    client = subprocess.Popen(["rsync", "-a", "--bwlimit=500", f"{url}big", f"{place}/"])
    until(lambda: any(place.glob(".big.*")))
    return client


def test_remove_leaves_readers_alone_and_nothing_behind(ours: Path, folder: Path) -> None:
    (ours.with_name("ours-tree") / "big").write_bytes(bytes(2_000_000))
    assert run_server(ours, "commit", NAME).returncode == 0
    path, copy = folder / NAME / ".redirected", ours.with_name("copy")
    with rsync_daemon({NAME: path}, preload=library()) as url:
        client = slow_reader(f"{url}/{NAME}/", copy)
        done = run_server(ours, "fallback", "remove", NAME, "--json")
        assert done.returncode == ExitCode.FALLBACK
        said = json.loads(done.stdout)
        assert (said["existed"], said["gone"]) == (True, False)
        command = ["rsync", f"{url}/{NAME}/"]
        late = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
        assert late.returncode == 5
        assert client.wait(SECONDS) == 0
    assert (copy / "big").read_bytes() == bytes(2_000_000)
    assert run_server(ours, "fallback", "remove", NAME).returncode == 0
    assert not (folder / NAME).exists()
    assert "no attr tree" in run_server(ours, "fallback", "remove", NAME).stdout


def test_a_renamed_module_leaves_no_attr_tree(ours: Path, folder: Path) -> None:
    text = (ours / "server.toml").read_text()
    (ours / "server.toml").write_text(text.replace(f"[modules.{NAME}]", "[modules.renamed]"))
    done = run_server(ours, "commit", "renamed")
    assert done.returncode == 0, done.stderr
    assert f"{NAME}: attr tree removed" in done.stderr
    assert not (folder / NAME).exists()


def test_a_service_removes_the_attr_tree_of_a_renamed_module(ours: Path, folder: Path) -> None:
    shutil.copytree(ours / "modules" / NAME, ours / "modules" / "renamed")
    with service(ours):
        text = (ours / "server.toml").read_text()
        new = ours / "new"
        new.write_text(text.replace(f"[modules.{NAME}]", "[modules.renamed]"))
        new.replace(ours / "server.toml")
        until(lambda: not (folder / NAME).exists())
        until((folder / "renamed" / "tree").exists)


@pytest.mark.parametrize(
    "arguments", [["remove"], ["remove", "--all", NAME], ["remove", "../x"], ["remove", ""]]
)
def test_remove_wants_a_name_that_can_be_one(ours: Path, arguments: list[str]) -> None:
    done = run_server(ours, "fallback", *arguments)
    assert done.returncode in (ExitCode.USAGE, ExitCode.UNKNOWN_MODULE)


def test_names_that_rsync_cannot_tell_apart_are_told_before_they_matter(ours: Path) -> None:
    added = run_server(ours, "add", NAME.upper(), str(ours.with_name("ours-tree")))
    assert added.returncode == 0
    assert "cannot distinguish the module" in added.stderr
    built = run_server(ours, "fallback", "build", NAME)
    assert built.returncode == ExitCode.CONFIG
    assert "cannot distinguish the module" in built.stderr
    other = ours.with_name("other")
    other.mkdir()
    (other / "file").touch()
    assert run_server(ours, "add", "apart", str(other)).stderr == ""
    assert run_server(ours, "commit", "apart").returncode == 0
    assert run_server(ours, "fallback", "build", "apart").returncode == 0
    text = run_server(ours, "fallback", "conf", "--no-test")
    assert "[apart]" in text.stdout
    assert f"[{NAME}]" not in text.stdout
    assert text.stderr.count("cannot distinguish the module") == 2


def test_a_new_module_is_served_soon_after_its_first_commit(ours: Path) -> None:
    tree = ours.with_name("fresh")
    tree.mkdir()
    (tree / "file").write_text("x")
    with service(ours) as running:
        configure(ours, ours.with_name("ours-tree"), modules=f'[modules.fresh]\npath = "{tree}"')
        until(lambda: "has no commit to list" in (ours.parent / "log").read_text())
        assert run_server(ours, "commit", "fresh").returncode == 0
        url = running.url.replace(f"/{NAME}/", "/fresh/")
        command = ["rsync", url]
        until(
            lambda: (
                subprocess.run(command, capture_output=True, timeout=60, check=False).returncode
                == 0
            )
        )
