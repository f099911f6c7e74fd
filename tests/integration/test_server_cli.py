"""`huai-server` as its users meet it: results, JSON, exit codes, signals."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from huai_program.locking import locked
from huai_schema.errors import ExitCode
from huai_server.config.load import load
from huai_server.state.paths import module_places
from tests.support.committing import (
    NAME,
    SECONDS,
    git,
    run_server,
    server_command,
    server_environment,
)
from tests.support.loaded import telling
from tests.support.mounting import needs_mounts, with_own_mounts
from tests.support.processes import open_paths, run_program, until
from tests.support.upstream import Site


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    (tree / "d").mkdir(parents=True)
    for number in range(5):
        (tree / f"d/{number}").write_text("x" * number)
    return tree


@pytest.fixture
def root(tmp_path: Path, tree: Path) -> Path:
    root = tmp_path / "state"
    assert run_server(root, "add", NAME, str(tree)).returncode == 0
    return root


def results(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """Every line of stdout is JSON of a known version."""
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(line["v"] == 1 and line["type"] for line in lines)
    return lines


def result(root: Path, *arguments: str, code: int = 0) -> dict[str, Any]:
    done = run_server(root, *arguments, "--json")
    assert done.returncode == code, done
    (line,) = results(done)
    return line


def test_commits_name_the_mirrors_that_were_added(tmp_path: Path, tree: Path) -> None:
    root, mirrors = tmp_path / "state", ["https://o.example/m", "rsync://p.example/m"]
    options = [word for url in mirrors for word in ("--mirror", url)]
    assert run_server(root, "add", NAME, str(tree), *options).returncode == 0
    result(root, "commit", NAME)
    descriptor = git(module_places(root, NAME).repository, "show", "main:huai").splitlines()
    assert [line.partition("\t")[2] for line in descriptor if "mirror" in line] == mirrors
    assert run_server(root, "add", "n", str(tree), "--mirror", "/srv/m").returncode == 40


def test_add_writes_its_options(tmp_path: Path, tree: Path) -> None:
    options = ["--cross-file-systems", "--no-owners", "--digest", "off", "--serve-content"]
    values = {"one_file_system": False, "owners": False, "digest": "off", "serve_content": True}
    relay = {"relay": "/usr", "relay_name": "other"}
    for name, words, expected in (
        ("one", [*options, "--private"], {**values, "access": "private"}),
        ("two", ["--relay", "/usr", "--relay-name", "other"], relay),
        ("three", ["--digest", "later"], {"digest": "later"}),
    ):
        done = run_server(tmp_path, "add", name, str(tree), *words)
        assert done.returncode == 0, done.stderr
        module = load(tmp_path).module(name)
        assert {key: getattr(module, key) for key in expected} == expected


def test_a_list_of_changes_is_spelt_as_the_command_says(root: Path, tree: Path) -> None:
    result(root, "commit", NAME)
    (tree / "d/odd\nname").touch()
    (tree / "list").write_bytes(b"d/odd\nname\0list\0")
    arguments = ("commit", NAME, "--changes", str(tree / "list"), "--changes-format", "nul")
    assert result(root, *arguments)["counts"]["added"] == 2


def test_a_module_from_its_beginning_to_its_end(root: Path, tree: Path) -> None:
    repository = module_places(root, NAME).repository
    assert result(root, "status")["serial"] is None
    first = result(root, "commit", NAME)
    expected = {"type": "commit", "changed": True, "serial": 1, "hashed_files": 5, "problems": []}
    assert first | expected == first
    assert first["totals"]["entries"] == 7
    assert first["commit"] == git(repository, "rev-parse", "main")
    again = result(root, "commit", NAME)
    assert (again["changed"], again["commit"]) == (False, first["commit"])
    (tree / "d/new").touch()
    second = result(root, "commit", NAME)
    counts = {"added": 1, "removed": 0, "changed": 1, "moved": 0, "new_bytes": 0}
    assert second["counts"] == counts
    status = result(root, "status", NAME)
    assert (status["type"], status["serial"], status["problem"]) == ("module", 2, None)
    check = result(root, "check", NAME)
    assert (check["type"], check["commits"], check["faults"]) == ("check", 2, [])
    removed = {"v": 1, "type": "removed", "module": NAME, "purged": False}
    assert result(root, "remove", NAME) == removed
    assert tree.exists()
    assert result(root, "add", NAME, str(tree))["type"] == "added"
    assert result(root, "commit", NAME)["serial"] == 2
    result(root, "remove", NAME, "--purge")
    assert not module_places(root, NAME).folder.exists()
    result(root, "add", NAME, str(tree))
    assert result(root, "commit", NAME)["serial"] == 1


def test_a_module_that_becomes_private_is_closed_to_other_users(
    tmp_path: Path, root: Path, tree: Path
) -> None:
    www = tmp_path / "www"
    www.mkdir()
    folders = [root / "modules/m", www / "git/m.git"]
    text = (root / "server.toml").read_text()
    (root / "server.toml").write_text(f'{text}\n[modules.m.static]\nto = ["{www}"]\n')
    assert run_server(root, "commit", "m").returncode == 0
    folders[0].chmod(0o755)
    assert [folder.stat().st_mode & 0o777 for folder in folders] == [0o755, 0o755]
    text = (root / "server.toml").read_text()
    private = text.replace("[modules.m]\n", '[modules.m]\naccess = "private"\n')
    (root / "server.toml").write_text(private)
    assert "m is private, and every user" in run_server(root, "check", "m").stderr
    (tree / "new").write_text("1")
    assert run_server(root, "commit", "m").returncode == 0
    assert [folder.stat().st_mode & 0o777 for folder in folders] == [0o750, 0o750]
    assert run_server(root, "check", "m").stderr == ""
    added = run_server(root, "add", "other", str(tree), "--private")
    assert added.returncode == 0, added.stderr
    assert (root / "modules/other").stat().st_mode & 0o007 == 0


def test_several_modules_in_one_call(root: Path, tree: Path) -> None:
    run_server(root, "add", "gone", str(root))
    run_server(root, "add", "z", str(tree))
    config = root / "server.toml"
    config.write_text(config.read_text().replace(f'"{root}"', f'"{root}/nothing"'))
    done = run_server(root, "commit", "--all", "--json")
    assert done.returncode == 42
    lines = results(done)
    assert [line["type"] for line in lines] == ["error", "commit", "commit"]
    assert lines[0]["message"].startswith("gone: ")
    assert [line["module"] for line in lines[1:]] == [NAME, "z"]
    done = run_server(root, "check", NAME, "z", NAME, "--json")
    assert done.returncode == 0
    assert [line["module"] for line in results(done)] == [NAME, "z"]
    for arguments in (["commit"], ["check"], ["check", "--all", NAME]):
        done = run_server(root, *arguments)
        assert done.returncode == 1
        assert "--all" in done.stderr
    assert run_server(root, "commit", NAME, "nosuch").returncode == 45


def test_people_get_sentences_and_with_quiet_only_errors(root: Path, tree: Path) -> None:
    assert run_server(root, "commit", NAME).stdout.startswith("m: serial 1: 7 added")
    assert "nothing changed" in run_server(root, "commit", NAME).stdout
    assert "sound" in run_server(root, "check", NAME).stdout
    assert "7 entries" in run_server(root, "status").stdout
    (tree / "new").touch()
    for command in ("commit", "commit", "check", "audit"):
        done = run_server(root, command, "--all", "--quiet")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert result(root, "status")["serial"] == 2
    shutil.rmtree(tree)
    done = run_server(root, "commit", NAME, "-q")
    assert done.returncode == 42
    assert done.stderr


def test_status_of_no_module_says_what_to_do(tmp_path: Path) -> None:
    assert "huai-server add NAME PATH" in run_server(tmp_path, "status").stdout
    assert run_server(tmp_path, "status", "--json").stdout == ""


def test_a_content_url_is_checked_when_it_is_added(root: Path, tree: Path) -> None:
    done = run_server(root, "add", "x", str(tree), "--content-url", "a/b")
    assert done.returncode == 40
    for word in ("[modules.x]", "content_urls", "rsync://HOST/x"):
        assert word in done.stderr
    assert "no --content-url" in run_server(root, "add", "x", str(tree)).stdout


def test_a_shell_completes_commands_and_modules(root: Path) -> None:
    for shell in ("bash", "zsh", "fish"):
        script = run_server(root, "completion", shell)
        assert f"_HUAI_SERVER_COMPLETE={shell}_complete" in script.stdout
        variables = {
            "COMP_WORDS": f"huai-server --root {root} commit ",
            "COMP_CWORD": "" if shell == "fish" else "4",
            "_HUAI_SERVER_COMPLETE": f"{shell}_complete",
        }
        done = run_program(*server_command(root)[:3], env=server_environment() | variables)
        assert NAME in done.stdout.replace(",", "\n").split()


def test_problems_are_named_and_have_an_exit_code(root: Path, tree: Path) -> None:
    (tree / "busy").touch()
    os.truncate(tree / "busy", 300 << 20)
    writer = subprocess.Popen(["sh", "-c", f"while :; do echo x >> {tree}/busy; done"])
    try:
        done = run_server(root, "commit", NAME, "--json")
    finally:
        writer.kill()
        writer.wait(SECONDS)
    assert done.returncode == 41
    outcome = "it is left out, because it has no old entry"
    assert results(done)[0]["problems"] == [["busy", "changed while it was read", outcome]]
    assert f"busy: changed while it was read; {outcome}" in done.stderr
    assert "list files that always change in `volatile`" in done.stderr


ERRORS = {45: ["commit", "nn"], 1: ["commit"], 42: ["commit", NAME], 40: ["add", "a b", "/"]}


def test_errors_have_their_code_a_hint_and_json(root: Path, tree: Path) -> None:
    shutil.rmtree(tree)
    for code, arguments in ERRORS.items():
        plain = run_server(root, *arguments)
        assert (plain.returncode, plain.stdout) == (code, "")
        assert plain.stderr.startswith("huai-server: ")
        assert len(plain.stderr.splitlines()) >= 2
        done = run_server(root, *arguments, "--json")
        assert done.returncode == code
        if code != 1:
            (line,) = results(done)
            assert (line["type"], line["code"]) == ("error", code)
            assert line["hint"]


def test_a_wrong_command_line_points_to_the_help(root: Path) -> None:
    for command, *arguments in (
        [""],
        ["", "nonsense"],
        ["status", "--nonsense"],
        ["commit", NAME, "--wait", "-1"],
        ["add", "x", "/no/such"],
    ):
        words = [command] if command else []
        done = run_server(root, *words, *arguments)
        assert done.returncode == 1
        assert " ".join(["huai-server", *words, "--help"]) in done.stderr


def test_a_misspelt_module_or_key_is_answered_with_its_neighbour(root: Path) -> None:
    for command in ("commit", "check", "remove", "status"):
        done = run_server(root, command, NAME * 2)
        assert (done.returncode, f"'{NAME}'" in done.stderr) == (45, True), done
    (root / "server.toml").write_text("[modules.m]\npaht = '/'\n")
    for command in ("commit", "check", "status", "remove"):
        done = run_server(root, command, NAME)
        assert (done.returncode, "'path'" in done.stderr) == (40, True), done


def test_status_shows_the_others_past_a_damaged_module(root: Path, tree: Path) -> None:
    run_server(root, "commit", NAME)
    for name in ("a", "z"):
        run_server(root, "add", name, str(tree))
        run_server(root, "commit", name)
    run_server(root, "add", "none", str(tree))
    (module_places(root, NAME).repository / "HEAD").unlink()
    done = run_server(root, "status", "--json")
    assert done.returncode == 50
    modules = {line["module"]: (line["serial"], bool(line["problem"])) for line in results(done)}
    assert modules == {"a": (1, False), "m": (None, True), "none": (None, False), "z": (1, False)}
    assert "cannot open" in run_server(root, "status").stdout


def test_check_finds_damage_and_none_before_the_first_commit(root: Path) -> None:
    done = run_server(root, "check", NAME)
    assert (done.returncode, done.stderr) == (0, "")
    assert "no commit yet" in done.stdout
    assert result(root, "check", NAME)["commits"] == 0
    run_server(root, "commit", NAME)
    for name in ("HEAD", "refs/heads/main"):
        damaged = module_places(root, NAME).repository / name
        sound = damaged.read_bytes()
        damaged.write_text("nonsense")
        done = run_server(root, "check", NAME)
        assert done.returncode == 50, name
        assert "restore the repository from a backup" in done.stderr
        damaged.write_bytes(sound)


def test_a_module_begins_again_without_its_damaged_repository(place: Site, tmp_path: Path) -> None:
    up = place.upstream()
    up.put(b"a", b"content")
    up.commit()
    down = place.downstream(up)
    down.synced()
    repository = module_places(up.root, up.name).repository
    (pack,) = (repository / "objects" / "pack").glob("*.pack")
    pack.chmod(0o600)
    pack.write_bytes(bytes(pack.stat().st_size))
    done = run_server(up.root, "check", up.name)
    assert done.returncode == 50
    assert "move it away and commit" in done.stderr
    repository.rename(tmp_path / "away")
    up.commit()
    assert down.sync().code == 46
    assert not down.synced("--accept-rollback")["changed"]
    up.put(b"b")
    up.commit()
    down.synced()


def test_two_commits_at_once(root: Path) -> None:
    with locked(module_places(root, NAME).lock):
        done = run_server(root, "commit", NAME)
        assert done.returncode == 43
        assert f"process {os.getpid()}" in done.stderr
        assert result(root, "status")["running"] == os.getpid()
        assert run_server(root, "remove", NAME, "--purge").returncode == 43
        waiting = subprocess.Popen(
            server_command(root, "commit", NAME, "--wait", str(SECONDS)),
            env=server_environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        time.sleep(0.5)
        assert waiting.poll() is None
    output, _ = waiting.communicate(timeout=SECONDS)
    assert (waiting.returncode, "serial 1" in output) == (0, True)
    assert result(root, "remove", NAME, "--purge")["purged"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_commit_soon_and_cleanly(
    root: Path, tree: Path, number: int, code: int
) -> None:
    run_server(root, "commit", NAME)
    for name in ("huge", "huge2"):  # minutes of reading; a commit reads no larger holes
        (tree / name).touch()
        os.truncate(tree / name, 30 << 30)
    process = subprocess.Popen(
        server_command(root, "commit", NAME),
        env=server_environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    until(lambda: any("huge" in path for path in open_paths(process.pid)))
    process.send_signal(number)
    _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == code, errors
    assert "Traceback" not in errors
    assert "next run" in errors
    assert not list(root.rglob("tmp_*"))
    for name in ("huge", "huge2"):
        (tree / name).unlink()
    assert result(root, "commit", NAME)["serial"] in (1, 2)
    assert result(root, "check", NAME)["faults"] == []


def test_a_reader_that_goes_away_shows_in_the_exit_code_alone(root: Path) -> None:
    for arguments in (["status"], ["status", "--json"], ["--help"], ["commit", NAME]):
        reader, writer = os.pipe()
        os.close(reader)
        command = server_command(root, *arguments)
        done = run_program(*command, env=server_environment(), stdout=writer)
        os.close(writer)
        assert (done.returncode, done.stderr) == (141, "")


def test_a_root_that_cannot_be_written(tmp_path: Path, tree: Path) -> None:
    (tmp_path / "file").touch()
    done = run_server(tmp_path / "file/state", "add", NAME, str(tree))
    assert done.returncode in (1, 11)
    assert str(tmp_path / "file") in done.stderr


@needs_mounts
def test_a_full_disk_is_not_a_wrong_configuration(tmp_path: Path, tree: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    add = shlex.join(server_command(disk, "add", NAME, str(tree)))
    script = f"mount -t tmpfs -o nr_inodes=1 tmpfs {disk} && {add}"
    done = subprocess.run(
        with_own_mounts(script),
        env=server_environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == ExitCode.FILE_IO, done.stderr
    assert "No space left on device" in done.stderr


def test_help_is_not_an_error(root: Path) -> None:
    for command in (["--help"], ["-h"], ["--version"], ["commit", "--help"]):
        done = run_server(root, *command)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout


def test_a_commit_needs_no_certificates(root: Path) -> None:
    nothing = root.parent / "no-certificates"
    nothing.touch()
    environment = {**server_environment(), "SSL_CERT_FILE": str(nothing)}
    done = run_program(*server_command(root, "commit", NAME), env=environment)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_commit_from_a_list_loads_nothing_heavy(root: Path, tree: Path) -> None:
    heavy = (
        *("tomlkit", "rich", "logging", "subprocess", "hashlib"),
        *("huai_server.export.export", "huai_server.fallback.attr", "huai_server.signing.keys"),
        "huai_server.store.check",
    )
    code = f"{telling(heavy)}from huai_server.cli.main import main\nmain()"
    result(root, "commit", NAME)
    (tree / "new").touch()
    command = [sys.executable, "-c", code, "--root", str(root), "commit", "-q", NAME]
    done = run_program(
        *command, "--changes", "-", env=server_environment(), input="new\n", check=True
    )
    assert done.stderr == "[]\n"
    assert not result(root, "commit", NAME)["changed"]
