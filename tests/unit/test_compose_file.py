"""The references between docker-compose.yml, the Dockerfile and their files.

Whether the services work is proved by `./dev test-compose`, which needs an engine.
"""

import fnmatch
import os
import re
import stat
import subprocess
from pathlib import Path

import pytest

from huai_client.config import load as client
from huai_server.config import load as server
from huai_server.config.tables import Fallback
from tests.compose.image import BASE
from tests.compose.stack import SERVICES

TOP = Path(__file__).parents[2]
HOOKS = TOP / "hooks" / "compose"
COMPOSE = (TOP / "docker-compose.yml").read_text(encoding="utf-8")
DOCKERFILE = (TOP / "Dockerfile").read_text(encoding="utf-8")
IGNORE = (TOP / ".dockerignore").read_text(encoding="utf-8").splitlines()


def blocks(text: str, indent: int) -> dict[str, str]:
    """Return the text below each key at one depth of a YAML text."""
    parts = re.split(rf"^ {{{indent}}}([\w-]+):", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def services() -> dict[str, str]:
    return blocks(blocks(COMPOSE, 0)["services"], 2)


def test_another_module_takes_the_sample_s_place_everywhere() -> None:
    variable = "${HUAI_MODULE:-sample}"
    for name in ("mirror-update", "rsyncd", "downstream", "plain"):
        text = services()[name]
        assert variable in text, name
        assert "sample" not in text.replace(variable, "").replace("update-sample", ""), name
    # Each documented variable is read, and all are optional.
    variables = set(re.findall(r"^#   (HUAI_\w+)=", COMPOSE, re.MULTILINE))
    assert variables == {"HUAI_TREES", "HUAI_MODULE", "HUAI_UPDATE"}
    assert all(f"${{{variable}:-" in COMPOSE for variable in variables)


def test_what_a_service_says_is_bounded() -> None:
    anchor = blocks(COMPOSE, 0)["x-huai"]
    assert "max-size: 10m" in anchor
    assert "max-file:" in anchor


def test_the_test_knows_all_services() -> None:
    assert sorted(services()) == sorted(SERVICES)


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_is_confined_watched_and_restarted(name: str) -> None:
    anchor = blocks(COMPOSE, 0)["x-huai"]
    for line in (
        "init: true",
        "restart: unless-stopped",
        "read_only: true",
        "cap_drop: [ALL]",
        'security_opt: ["no-new-privileges:true"]',
    ):
        assert re.search(rf"^  {re.escape(line)}", anchor, re.MULTILINE), line
    service = services()[name]
    assert "<<: *huai\n" in service
    keys = blocks(service, 4)
    assert "healthcheck" in keys
    forbidden = {"read_only", "cap_add", "cap_drop", "privileged", "user", "security_opt", "init"}
    assert not forbidden & set(keys)


def test_only_who_changes_a_volume_can_write_to_it() -> None:
    written = {
        name: re.findall(r"^      - (\S+):/[\w/-]+$", text, re.MULTILINE)
        for name, text in services().items()
    }
    assert written == {
        "mirror-update": ["${HUAI_TREES:-mirror}", "metadata"],
        "upstream": [],
        "rsyncd": [],
        "downstream": ["client", "copy"],
        "plain": ["plain"],
    }


def test_ports_are_open_to_this_machine_only() -> None:
    ports = re.findall(r'^    ports: \["(.*)"\]$', COMPOSE, re.MULTILINE)
    assert len(ports) == COMPOSE.count("ports:") == 2
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_the_configurations_are_read_by_the_programs_and_fit_the_services() -> None:
    upstream = server.load(HOOKS)
    downstream = client.load(HOOKS)
    for name, module in downstream.modules.items():
        assert module.url == f"http://upstream:{upstream.listen.port}"
        assert upstream.module(name).content_urls == (
            f"rsync://rsyncd:{upstream.fallback.port}/{name}",
        )
    assert f":{upstream.listen.port}/healthz" in services()["upstream"]
    assert f"127.0.0.1:{upstream.fallback.port}/" in services()["rsyncd"]
    assert f"rsyncd:{upstream.fallback.port}/" in services()["plain"]
    assert Fallback().folder in services()["rsyncd"]
    assert not upstream.fallback.use_chroot
    assert upstream.fallback.port > 1023


def test_the_image_gets_what_it_copies_and_nothing_unasked() -> None:
    patterns = [line.removeprefix("!") for line in IGNORE if line.startswith("!")]
    for pattern in patterns:
        assert pattern.startswith("build/") or list(TOP.glob(pattern)), pattern
    for name in (".git/config", ".venv/bin/python", "tests/conftest.py", "build/compose.lock"):
        assert not let_through(name), name
    assert not let_through("native/python/huai_native/_native.abi3.so")
    assert not let_through("native/target/release/build.log")


def matches(name: str, pattern: str) -> bool:
    if pattern.startswith("**/"):
        return fnmatch.fnmatchcase(Path(name).name, pattern.removeprefix("**/"))
    return name.count("/") == pattern.count("/") and fnmatch.fnmatchcase(name, pattern)


def let_through(name: str) -> bool:
    """Match like .dockerignore: the last line that matches the name, or a folder above, decides."""
    through = True
    parents = [name, *map(str, Path(name).parents)][:-1]
    for line in IGNORE:
        if not line or line.startswith("#"):
            continue
        pattern = line.removeprefix("!")
        if any(matches(parent, pattern) for parent in parents):
            through = line.startswith("!")
    return through


def test_nothing_names_a_registry_or_a_package_index() -> None:
    sources = [TOP / "Dockerfile", TOP / "docker-compose.yml", *HOOKS.iterdir()]
    for source in sources:
        text = source.read_text(encoding="utf-8")
        assert not re.search(r"docker\.io|ghcr|quay|pypi|index-url|https://", text), source


def test_the_base_image_is_one_everywhere() -> None:
    assert re.findall(r"^ARG BASE_IMAGE=(\S+)$", DOCKERFILE, re.MULTILINE) == [BASE]
    assert re.findall(r"BASE_IMAGE:-([^}]+)\}", COMPOSE) == [BASE]


def test_build_arguments_are_passed_on() -> None:
    declared = set(re.findall(r"\b(PIP_\w+)", DOCKERFILE[DOCKERFILE.index("ARG RUST") :]))
    passed = set(re.findall(r"^      (PIP_\w+): \$\{(?:\1):-\}$", COMPOSE, re.MULTILINE))
    assert declared == passed
    assert len(declared) > 3


@pytest.mark.parametrize("name", ["repeat", "listed", "update-sample"])
def test_scripts_can_be_started(name: str) -> None:
    assert (HOOKS / name).stat().st_mode & stat.S_IXOTH


def repeat(folder: Path, *command: str) -> "subprocess.Popen[str]":
    settings = {
        "HUAI_EVERY": "0",
        "HUAI_JITTER": "0",
        "HUAI_SUCCESS": "41 24",
        "TMPDIR": str(folder),
    }
    return subprocess.Popen(
        [HOOKS / "repeat", *command],
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: "subprocess.Popen[str]") -> tuple[str, str]:
    """End the process, and return its last output."""
    process.terminate()
    output = process.communicate(timeout=20)
    assert process.returncode == 143
    return output


def test_repeat_goes_on_after_a_failure(tmp_path: Path) -> None:
    with repeat(tmp_path, "sh", "-c", "echo begun; exit 3") as process:
        assert process.stdout
        assert [process.stdout.readline() for _ in range(3)] == ["begun\n"] * 3
        _, errors = ended(process)
    assert "ended with exit code 3" in errors
    assert list(tmp_path.iterdir()) == []


def test_repeat_hands_the_signal_on_and_waits(tmp_path: Path) -> None:
    script = "trap 'echo told; exit 0' TERM; echo begun; while true; do sleep 0.05; done"
    with repeat(tmp_path, "sh", "-c", script) as process:
        assert process.stdout
        assert process.stdout.readline() == "begun\n"
        output, _ = ended(process)
    assert output == "told\n"


def test_repeat_knows_whether_the_last_success_is_recent(tmp_path: Path) -> None:
    def healthy() -> bool:
        with repeat(tmp_path, "--healthy") as process:
            return process.wait(timeout=20) == 0

    assert not healthy()
    with repeat(tmp_path, "echo", "done") as process:
        assert process.stdout
        assert [process.stdout.readline() for _ in range(2)] == ["done\n"] * 2
        assert healthy()
        ended(process)
    (succeeded,) = tmp_path.iterdir()
    os.utime(succeeded, (0, 0))
    assert not healthy()


def test_repeat_takes_what_is_done_but_for_some_paths_for_a_success(tmp_path: Path) -> None:
    for code, healthy in (("4", 1), ("41", 0)):
        with repeat(tmp_path, "sh", "-c", f"echo begun; exit {code}") as process:
            assert process.stdout
            assert [process.stdout.readline() for _ in range(3)] == ["begun\n"] * 3
            _, errors = ended(process)
        assert f"ended with exit code {code}" in errors
        with repeat(tmp_path, "--healthy") as process:
            assert process.wait(timeout=20) == healthy
