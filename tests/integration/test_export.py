"""Exports as administrators meet them: `huai-server export`, and commits that export."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from huai_program.locking import locked
from huai_schema.codec.static_files import Static
from huai_schema.errors import ExitCode
from huai_server.state.paths import module_places
from tests.support.committing import NAME, git, run_server
from tests.support.mirror_files import names, time_list, tree_state

LISTS = {"fullfilelist", f"fullfiletimelist-{NAME}", f"imagelist-{NAME}"}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    for path in ("a", "d/b", "d/e/c.iso"):
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(path)
    return tree


@pytest.fixture
def root(tmp_path: Path, tree: Path) -> Path:
    root = tmp_path / "state"
    assert run_server(root, "add", NAME, str(tree)).returncode == 0
    return root


def configure(root: Path, table: str) -> None:
    with (root / "server.toml").open("a") as file:
        file.write(f'\n[modules.{NAME}.export]\nhost = "mirror.example"\n{table}\n')


def lines(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    """Events by their type."""
    return {line["type"]: line for line in map(json.loads, done.stdout.splitlines())}


def commit(root: Path, code: int = 0) -> dict[str, dict[str, Any]]:
    done = run_server(root, "commit", NAME, "--json")
    assert done.returncode == code, done
    return lines(done)


def repository(root: Path) -> Path:
    return module_places(root, NAME).repository


def paths(tree: Path) -> set[str]:
    return {str(path.relative_to(tree)) for path in tree.rglob("*")}


def test_one_commit_holds_the_lists_that_describe_it(root: Path, tree: Path) -> None:
    configure(root, 'files = ["fedora", "trace", "arch", "ls-lR", "timestamp", "tunasync"]')
    for _ in range(3):
        events = commit(root)
        assert events["commit"]["changed"]
        assert events["export"]["commit"] == events["commit"]["commit"]
        rows = {
            row.path: row for row in time_list((tree / f"fullfiletimelist-{NAME}").read_bytes())
        }
        assert rows.keys() == paths(tree) - LISTS
        assert events["commit"]["totals"]["entries"] == len(paths(tree)) + 1
        when = git(repository(root), "log", "-1", "--format=%ct", "main")
        assert (tree / "lastupdate").read_text().strip() == when
        before = tree_state(tree)
        events = commit(root)
        assert not events["commit"]["changed"]
        assert not any(file["changed"] for file in events["export"]["files"])
        assert not any(file["changed"] for file in exported(root)["files"])
        assert tree_state(tree) == before
        (tree / "d" / f"new{len(before)}").write_text("x")


def exported(root: Path, *arguments: str) -> dict[str, Any]:
    done = run_server(root, "export", NAME, *arguments, "--json")
    assert done.returncode == 0, done
    return lines(done)["export"]


def test_the_metadata_of_a_commit_with_an_export_are_sound(root: Path, tree: Path) -> None:
    configure(root, 'files = ["fedora", "ls-lR"]')
    for number in range(400):
        (tree / f"d/{number}").write_text("x" * number)
    commit(root)
    (tree / "d/399").write_text("changed")
    commit(root)
    assert run_server(root, "check", NAME).returncode == 0
    head = Static.decode((repository(root) / "static/head").read_bytes(), "head")
    assert head.newest == 2
    assert b"d/399" in (tree / "fullfilelist").read_bytes()


def test_a_folder_outside_gets_what_was_committed(root: Path, tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    configure(root, f'files = ["fedora"]\nfolder = "{out}"')
    assert commit(root)["commit"]["totals"]["entries"] == len(paths(tree)) + 1
    assert paths(out) == LISTS
    assert set(names((out / "fullfilelist").read_bytes())) == paths(tree)


def test_an_export_that_fails_does_not_keep_back_a_commit(
    root: Path, tree: Path, tmp_path: Path
) -> None:
    configure(root, 'files = ["trace", "fedora"]')
    (tmp_path / "elsewhere").mkdir()
    (tree / "project").symlink_to(tmp_path / "elsewhere")
    events = commit(root, ExitCode.DESTINATION)
    assert events["commit"]["changed"]
    assert events["error"]["name"] == "DESTINATION"
    assert paths(tmp_path / "elsewhere") == set()
    assert "fullfilelist" not in paths(tree)


def test_only_what_is_asked_for_and_where(root: Path, tree: Path, tmp_path: Path) -> None:
    commit(root)
    out = tmp_path / "out"
    out.mkdir()
    done = exported(root, "--only", "arch", "--only", "fedora", "--to", str(out))
    assert (
        {file["path"] for file in done["files"]}
        == paths(out)
        == LISTS | {*("lastupdate", "lastsync")}
    )
    assert all(file["size"] == (out / file["path"]).stat().st_size for file in done["files"])
    assert "lastupdate" not in paths(tree)


def test_exit_codes(root: Path, tmp_path: Path, subtests: pytest.Subtests) -> None:
    done = run_server(root, "export", NAME, "--only", "arch", "--to", str(tmp_path))
    assert done.returncode == ExitCode.UNKNOWN_MODULE
    assert "run: huai-server commit m" in done.stderr
    assert not (tmp_path / "lastupdate").exists()
    commit(root)
    for arguments, code in (
        ("m", ExitCode.USAGE),
        ("m --only arch", ExitCode.USAGE),
        ("m --to .", ExitCode.USAGE),
        ("m --only none --to .", ExitCode.USAGE),
        ("other --only arch --to .", ExitCode.UNKNOWN_MODULE),
        (f"m --only arch --to {tmp_path}/missing", ExitCode.DESTINATION),
        ("m --only arch --to /proc", ExitCode.FILE_IO),
    ):
        with subtests.test(arguments):
            assert run_server(root, "export", *arguments.split()).returncode == code


def test_a_damaged_repository_is_told_as_such(root: Path, tree: Path, tmp_path: Path) -> None:
    for number in range(300):
        (tree / f"d/{number}").write_text("")
    commit(root)
    (tmp_path / "out").mkdir()
    arguments = ("--only", "fedora", "--to", str(tmp_path / "out"))
    exported(root, *arguments)
    before = {path: (tmp_path / "out" / path).read_bytes() for path in LISTS}
    (pack,) = repository(root).glob("objects/pack/*.pack")
    pack.chmod(0o644)
    content = bytearray(pack.read_bytes())
    content[200:-200] = bytes(len(content) - 400)
    pack.write_bytes(content)
    done = run_server(root, "export", NAME, *arguments)
    assert done.returncode == ExitCode.UNSOUND, done
    assert {path: (tmp_path / "out" / path).read_bytes() for path in LISTS} == before


def test_an_export_waits_for_a_commit(root: Path, tmp_path: Path) -> None:
    commit(root)
    arguments = ("export", NAME, "--only", "arch", "--to", str(tmp_path))
    with locked(module_places(root, NAME).lock):
        assert run_server(root, *arguments).returncode == ExitCode.LOCKED
        assert run_server(root, *arguments, "--wait", "1").returncode == ExitCode.LOCKED
    assert run_server(root, *arguments, "--wait", "30").returncode == 0


def test_a_configuration_that_cannot_be_is_told(root: Path, subtests: pytest.Subtests) -> None:
    before = (root / "server.toml").read_text()
    for table in (
        'files = ["fedorra"]',
        'files = ["arch"]\nhost = "../up"',
        'files = ["fedora"]\nlist_name = "a/b"',
        'files = ["arch"]\nfolder = "../up"',
        'files = ["b3sums"]\nsums = ["a/../../b"]',
        'files = ["arch"]\nheartbeat = -1',
        'file = ["arch"]',
    ):
        with subtests.test(table):
            (root / "server.toml").write_text(before)
            configure(root, table)
            done = run_server(root, "commit", NAME)
            assert done.returncode == ExitCode.CONFIG, done
            assert "export" in done.stderr


def test_other_users_may_read_what_is_written(root: Path, tree: Path) -> None:
    configure(root, 'files = ["trace"]')
    before = os.umask(0o077)
    try:
        commit(root)
    finally:
        os.umask(before)
    assert (tree / "project/trace/mirror.example").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("options", [(), ("--changes", "/dev/null")])
def test_exports_do_not_hide_that_a_tree_is_empty(
    root: Path, tree: Path, options: tuple[str, ...]
) -> None:
    configure(root, 'files = ["trace"]')
    commit(root)
    tree.rename(tree.with_name("disk"))
    tree.mkdir()  # the disk is not mounted
    for _ in range(2):
        for command in (("commit", NAME, *options), ("export", NAME)):
            assert run_server(root, *command).returncode == ExitCode.EMPTY_ROOT
        assert paths(tree) == set()


def test_a_list_that_an_update_left_is_enough(root: Path, tree: Path, tmp_path: Path) -> None:
    configure(root, 'files = ["fedora", "trace", "arch"]')
    changes = tmp_path / "changes"

    def commit_listed(*named: str) -> dict[str, Any]:
        changes.write_text("".join(f"{name}\n" for name in named))
        done = run_server(root, "commit", NAME, "--changes", str(changes), "--json")
        assert done.returncode == 0, done
        return lines(done)["commit"]

    commit(root)
    (tree / "d/new").write_text("x")
    done = commit_listed("d", "d/new")
    assert (done["changed"], done["lists"]["scanned"]) == (True, None)
    assert b"d/new" in (tree / "fullfilelist").read_bytes()
    assert done["totals"]["entries"] == len(paths(tree)) + 1
    assert not commit_listed("d/new")["changed"]
    assert not commit(root)["commit"]["changed"]
    (tree / "a").unlink()
    assert commit_listed("a")["changed"]
    assert b"\na\n" not in (tree / "fullfilelist").read_bytes()
    before = tree_state(tree)
    (tree / "lastupdate").unlink()  # as a killed run may leave it
    assert commit_listed("d/new")["totals"]["entries"] == len(paths(tree)) + 1
    assert tree_state(tree).keys() == before.keys()
    assert not commit(root)["commit"]["changed"]
