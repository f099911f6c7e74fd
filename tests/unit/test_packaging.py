"""The lock files, the licence and the `dev` script, on which packagers rely."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from huai_schema import __version__

TOP = Path(__file__).parents[2]
LOCKS = ("client", "server", "dev")
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def lock_text(name: str) -> str:
    return (TOP / "requirements" / f"{name}.lock").read_text(encoding="utf-8")


def pins(name: str) -> dict[str, str]:
    """Return the version of each package in a lock file."""
    return dict(re.findall(r"^([a-z0-9._-]+)==(\S+)", lock_text(name), re.MULTILINE))


def names(requirements: list[str]) -> set[str]:
    names = (re.match(r"[A-Za-z0-9._-]+", requirement) for requirement in requirements)
    return {match[0].lower() for match in names if match}


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
    ("name", "requirements"),
    [
        ("client", PROJECT["dependencies"]),
        ("server", [*PROJECT["dependencies"], *EXTRAS["server"]]),
        ("dev", [*PROJECT["dependencies"], *(each for extra in EXTRAS.values() for each in extra)]),
    ],
)
def test_every_dependency_is_locked(name: str, requirements: list[str]) -> None:
    assert names(requirements) - set(pins(name)) == set()


def test_every_pin_is_within_its_bounds() -> None:
    """uvicorn has an upper bound: a subclass of ours uses a private interface."""
    locked = pins("dev")
    required = [*PROJECT["dependencies"], *(each for extra in EXTRAS.values() for each in extra)]
    for requirement in map(Requirement, required):
        assert requirement.specifier.contains(locked[requirement.name.lower()]), requirement
    bounded = [requirement for requirement in EXTRAS["server"] if "<" in requirement]
    assert names(bounded) == {"uvicorn"}


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
    # From another folder, because any working directory must do.
    command = [str(TOP / "dev"), *arguments]
    return subprocess.run(command, cwd="/", capture_output=True, text=True, timeout=60, check=False)


def test_help_names_every_command() -> None:
    commands = re.findall(r"^  ([a-z-]+) ", dev("help").stdout, re.MULTILINE)
    script = (TOP / "dev").read_text(encoding="utf-8")
    dispatched = re.findall(r"^    ([a-z-]+)\) ", script, re.MULTILINE)
    assert sorted(commands) == sorted([*dispatched, "help"])


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


def test_uv_takes_packages_from_where_pip_does() -> None:
    """uv reads no setting of pip itself."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("UV_")},
        "PIP_INDEX_URL": "http://127.0.0.1:1/simple",
        "UV_HTTP_RETRIES": "0",
    }
    done = subprocess.run(
        [TOP / "requirements/uv", "pip", "compile", "--no-cache", "-"],
        input="no-such-package\n",
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert "http://127.0.0.1:1/simple/no-such-package/" in done.stderr


def test_a_package_is_named_by_the_tests_that_need_it() -> None:
    text = (TOP / "requirements/debian.txt").read_text(encoding="utf-8")
    packages = re.findall(r"^(\S+) +named", text, re.MULTILINE)
    assert packages
    tests = [path.read_text(encoding="utf-8") for path in (TOP / "tests").rglob("test_*.py")]
    unnamed = [name for name in packages if not any(name in text for text in tests)]
    assert unnamed == []


def test_the_programs_know_their_version() -> None:
    assert __version__ == PROJECT["version"]


def test_no_library_of_huai_has_a_run_path() -> None:
    """A library in root's rsync daemon must not search folders of the builder."""
    libraries = [
        *(TOP / "server/huai_server/fallback/redirect").glob("_redirect*.so"),
        *(TOP / "native/python/huai_native").glob("_native*.so"),
    ]
    assert len(libraries) == 2
    for library in libraries:
        command = ["readelf", "--dynamic", "--wide", str(library)]
        section = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert "(NEEDED)" in section
        assert not re.search(r"\((RPATH|RUNPATH)\)", section), library
