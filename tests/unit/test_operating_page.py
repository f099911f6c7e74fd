"""client/OPERATING.md names what exists: commands, options, files, exit codes and their order."""

import re
from pathlib import Path

import click

from huai_client.cli.parallel.exit_codes import gravest
from tests.man_pages import command_line

TOP = Path(__file__).parents[2]
PAGE = TOP / "client" / "OPERATING.md"
TEXT = PAGE.read_text(encoding="utf-8")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")


def client() -> click.Group:
    group = command_line("huai-client")
    assert isinstance(group, click.Group)
    return group


def options(name: str) -> set[str]:
    """Those of a command."""
    command = client().get_command(click.Context(client()), name)
    assert command is not None, name
    return {option for each in command.params for option in each.opts} | {"--help"}


def test_every_call_can_be_made() -> None:
    calls = re.findall(r"huai-client ([a-z]+)\b([^`\n#;]*)", TEXT)
    assert len(calls) > 5
    for name, rest in calls:
        assert set(OPTION.findall(rest)) <= options(name), name


def test_every_option_is_one_of_sync() -> None:
    ours = re.sub(r"systemctl [^`\n]*", "", TEXT)
    assert {*OPTION.findall(ours)} - options("sync") == set()


def test_links_and_files_exist() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", TEXT)
    files = re.findall(r"`(hooks/[\w./]+)`", TEXT)
    assert links
    assert files
    assert [link for link in links if not (PAGE.parent / link).exists()] == []
    assert [file for file in files if not (TOP / file).exists()] == []
    units = re.findall(r"`(huai-client[@\w]*\.timer)`", TEXT.replace("@NAME", "@"))
    assert len(units) == 2
    assert all((TOP / "hooks" / "systemd" / unit).exists() for unit in units)


def test_the_light_codes_stand_in_their_order() -> None:
    (told,) = re.findall(r"from the\s+lightest: (.*?)\.", TEXT, re.DOTALL)
    codes = [int(code) for code in re.findall(r"[0-9]+", told)]
    assert len(codes) == 5
    assert [gravest(codes[: number + 1]) for number in range(5)] == codes
    assert gravest([*codes, 52]) == 52
