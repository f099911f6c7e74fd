"""The completions of shells: by the real bash, and by the exchanges of zsh and fish."""

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from docs.man.pages import command_line
from huai_client.config import load as client_config
from huai_program.cli.completion import SHELLS

TOP = Path(__file__).parents[2]
MODULES = ("centos", "cpan", "debian")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return an environment with `huai-client` on PATH, and three modules."""
    root = tmp_path / "root"
    for name in MODULES:
        client_config.make_root(root)
        module = client_config.Module(url="http://127.0.0.1:9", dest=str(tmp_path))
        client_config.add_module(root, name, module)
    path = [str(TOP / side) for side in ("schema", "client")]
    program = tmp_path / "bin" / "huai-client"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path[:0] = {path!r}\n"
        "from huai_client.cli.main import main\nmain()\n"
    )
    program.chmod(0o755)
    return {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "HUAI_CLIENT_ROOT": str(root),
        "HOME": "/nonexistent",
    }


def printed(environment: dict[str, str], *command: str) -> str:
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, check=True
    ).stdout


def bash(environment: dict[str, str], *words: str) -> list[str]:
    """Return the suggestions of bash for the last of the words."""
    script = (
        'source <(huai-client completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))\n'
        'function=$(complete -p huai-client | sed "s/.* -F \\([^ ]*\\) .*/\\1/")\n'
        '$function huai-client; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    return printed(environment, "bash", "-c", script, "bash", *words).split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["sync", ""], ["centos", "cpan", "debian"]),
        (["sync", "c"], ["centos", "cpan"]),
        (["sync", "--json", "cpan", "c"], ["centos"]),
        (["verify", "d"], ["debian"]),
        (["status", "d"], ["debian"]),
        (["--root", "/nonexistent", "sync", ""], []),
        (["syn"], ["sync"]),
        (["sync", "--dry"], ["--dry-run"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
    ],
)
def test_bash(environment: dict[str, str], words: list[str], offered: list[str]) -> None:
    assert bash(environment, "huai-client", *words) == offered


def test_a_broken_configuration_offers_nothing(environment: dict[str, str]) -> None:
    (Path(environment["HUAI_CLIENT_ROOT"]) / "client.toml").write_text("[modules\n")
    assert bash(environment, "huai-client", "sync", "") == []


def test_zsh(environment: dict[str, str]) -> None:
    variables = {"COMP_WORDS": "huai-client sync c", "COMP_CWORD": "2"}
    answer = printed(
        {**environment, **variables, "_HUAI_CLIENT_COMPLETE": "zsh_complete"}, "huai-client"
    )
    assert answer.split("\n")[:6] == ["plain", "centos", "_", "plain", "cpan", "_"]


def test_fish(environment: dict[str, str]) -> None:
    variables = {"COMP_WORDS": "huai-client sync c", "COMP_CWORD": "c"}
    answer = printed(
        {**environment, **variables, "_HUAI_CLIENT_COMPLETE": "fish_complete"}, "huai-client"
    )
    assert answer.split() == ["plain,centos", "plain,cpan"]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_scripts_ask_in_the_way_that_is_answered(
    environment: dict[str, str], shell: str
) -> None:
    script = printed(environment, "huai-client", "completion", shell)
    assert f"_HUAI_CLIENT_COMPLETE={shell}_complete" in script
    assert "huai-client" in script.splitlines()[-1] or "_completion" in script


def test_every_command_about_a_module_offers_modules() -> None:
    group = command_line("huai-client")
    assert isinstance(group, click.Group)
    asks, offers = set(), set()
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        for parameter in command.params:
            if parameter.name in {"name", "names"}:
                asks.add(name)
                offers |= {name} if parameter._custom_shell_complete else set()
    assert asks - offers == {"add"}
    assert "sync" in offers
