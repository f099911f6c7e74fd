"""The options, units, exit codes and their order in docs/DOWNSTREAM.md exist."""

import re
from pathlib import Path

import click

from docs.man.pages import command_line
from huai_schema.errors import worst_exit_code

TOP = Path(__file__).parents[2]
TEXT = (TOP / "docs" / "DOWNSTREAM.md").read_text(encoding="utf-8")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")


def client() -> click.Group:
    group = command_line("huai-client")
    assert isinstance(group, click.Group)
    return group


def test_every_option_is_one_of_the_client() -> None:
    """The blocks call other programs; `test_pages` tries calls of ours."""
    ours = re.sub(r"```.*?```|systemctl [^`\n]*", "", TEXT, flags=re.DOTALL)
    group = client()
    context = click.Context(group)
    commands = [group.get_command(context, name) for name in group.list_commands(context)]
    options = {
        each for command in commands if command for part in command.params for each in part.opts
    }
    assert {*OPTION.findall(ours)} - options == {"--help"}


def test_units_exist() -> None:
    units = re.findall(r"`(huai-client[@\w]*\.timer)`", TEXT.replace("@NAME", "@"))
    assert len(units) == 2
    assert all((TOP / "hooks" / "systemd" / unit).exists() for unit in units)


def test_the_light_codes_stand_in_their_order() -> None:
    (listed,) = re.findall(r"from the\s+lightest: (.*?)\.", TEXT, re.DOTALL)
    codes = [int(code) for code in re.findall(r"[0-9]+", listed)]
    assert len(codes) == 5
    assert [worst_exit_code(codes[: number + 1]) for number in range(5)] == codes
    assert worst_exit_code([*codes, 52]) == 52
