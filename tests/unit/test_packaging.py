"""The lock files, the licence and the `dev` script: what a packager relies on."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from huai_schema import __version__

TOP = Path(__file__).parents[2]
LOCKS = ("client", "server", "dev")
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def lock_text(name: str) -> str:
    return (TOP / "requirements" / f"{name}.lock").read_text(encoding="utf-8")


def pins(name: str) -> dict[str, str]:
    """Name and version of everything in a lock file."""
    return dict(re.findall(r"^([a-z0-9._-]+)==(\S+)", lock_text(name), re.MULTILINE))


def names(requirements: list[str]) -> set[str]:
    found = (re.match(r"[A-Za-z0-9._-]+", requirement) for requirement in requirements)
    return {match[0].lower() for match in found if match}


@pytest.mark.parametrize("name", LOCKS)
def test_every_pin_has_hashes(name: str) -> None:
    blocks = re.split(r"^(?=[a-z0-9._-]+==)", lock_text(name), flags=re.MULTILINE)[1:]
    assert blocks
    assert [block for block in blocks if "--hash=sha256:" not in block] == []


@pytest.mark.parametrize("name", LOCKS)
def test_no_lock_file_names_a_registry(name: str) -> None:
    words = r"https?:|file:|^\s*-(?!-hash)|find-links|index-url|trusted-host"
    lines = [line for line in lock_text(name).splitlines() if not line.lstrip().startswith("#")]
    assert [line for line in lines if re.search(words, line)] == []
    assert "://" not in lock_text(name)


def test_the_lock_files_agree_and_nest() -> None:
    client, server, dev = (set(pins(name).items()) for name in LOCKS)
    assert client < server < dev


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("client", PROJECT["dependencies"]),
        ("server", [*PROJECT["dependencies"], *EXTRAS["server"]]),
        ("dev", [*PROJECT["dependencies"], *(each for extra in EXTRAS.values() for each in extra)]),
    ],
)
def test_every_dependency_is_locked(name: str, wanted: list[str]) -> None:
    assert names(wanted) - set(pins(name)) == set()


def test_a_downstream_installs_no_web_framework() -> None:
    assert set(pins("client")) & {"fastapi", "starlette", "uvicorn", "uvloop", "pydantic"} == set()


def test_who_has_no_bucket_installs_nothing_for_it() -> None:
    assert "obstore" not in pins("server")


def test_every_dependency_has_its_reason() -> None:
    text = (TOP / "pyproject.toml").read_text(encoding="utf-8")
    entries = re.findall(r'^ {4}"[][a-z0-9-]+>=[^"]+",(.*)$', text, re.MULTILINE)
    assert len(entries) == sum(len(list_) for list_ in (PROJECT["dependencies"], *EXTRAS.values()))
    assert [entry for entry in entries if "#" not in entry] == []


def dev(*arguments: str) -> subprocess.CompletedProcess[str]:
    # From elsewhere, because any working directory has to do.
    command = [str(TOP / "dev"), *arguments]
    return subprocess.run(command, cwd="/", capture_output=True, text=True, timeout=60, check=False)


def test_help_names_every_command() -> None:
    shown = re.findall(r"^  ([a-z-]+) ", dev("help").stdout, re.MULTILINE)
    script = (TOP / "dev").read_text(encoding="utf-8")
    dispatched = re.findall(r"^    ([a-z-]+)\) ", script, re.MULTILINE)
    assert sorted(shown) == sorted([*dispatched, "help"])


def test_an_unknown_command_is_refused_with_the_usage() -> None:
    done = dev("tets")
    assert done.returncode == 1
    assert "usage:" in done.stderr
    assert "no such command: tets" in done.stderr


@pytest.mark.parametrize("command", ["check", "lint", "man", "test-compose", "test-long", "lock"])
def test_help_of_a_command_runs_nothing(command: str) -> None:
    done = dev(command, "--help")
    assert done.returncode == 0
    assert done.stdout == dev("help").stdout


@pytest.mark.parametrize("command", ["check", "lint", "man", "test-compose"])
def test_an_argument_that_a_command_does_not_take_is_refused(command: str) -> None:
    done = dev(command, "typo")
    assert done.returncode == 1
    assert f"{command} takes no arguments: typo" in done.stderr


def test_the_programs_know_their_version() -> None:
    assert __version__ == PROJECT["version"]
