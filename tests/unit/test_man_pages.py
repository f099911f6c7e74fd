"""The man pages escape any help text for troff, and contain all of `--help`."""

import re

import click
import pytest

from docs.man.pages import (
    PROGRAMS,
    SEE_ALSO,
    WRITTEN,
    command_line,
    commands,
    page,
    pages,
    top_context,
)
from docs.man.troff import escape, markdown
from huai_client.huai_rsync.environment import SETTINGS
from huai_client.huai_rsync.options import OPTIONS
from huai_schema.errors import ExitCode


@click.group()
@click.option("--root", envvar="HUAI_ROOT", help="Where the state is.")
def example(root: str) -> None:
    """Does things.

    .hidden for the 'reader'

    \b
    one\\x09
    'two
    """
    del root


@example.group()
def inner() -> None:
    """Holds more."""


@inner.command()
@click.argument("name")
@click.option("--dry-run", is_flag=True, help="Touch nothing.")
def leaf(name: str, *, dry_run: bool) -> None:
    """Works on NAME."""
    del name, dry_run


def test_no_line_of_a_help_text_is_a_request() -> None:
    assert escape(".a\n'b\nc.d") == "\\&.a\n\\&'b\nc.d"
    assert escape("a\\b-c") == "a\\eb\\-c"


def test_a_page_holds_every_command_option_and_variable() -> None:
    text = page("example", example, "1.2")
    assert text.startswith(
        '.TH EXAMPLE 1 "" "huai 1.2" "huai"\n.SH NAME\nexample \\- Does things\n'
    )
    assert "\n\\&.hidden for the 'reader'\n" in text
    assert "\n.nf\none\\ex09\n\\&'two\n.fi\n" in text
    assert "\n.SS example inner leaf\n" in text
    assert "\\fBexample inner leaf\\fP [OPTIONS] NAME\n" in text
    assert "\n\\fB\\-\\-dry\\-run\\fP\nTouch nothing.\n" in text
    assert "\n\\fBHUAI_ROOT\\fP\nthe default of \\-\\-root\n" in text


def test_a_page_explains_every_exit_code() -> None:
    text = page("example", example, "1.2")
    assert all(f"\n\\fB{code.value}\\fP\n{escape(code.meaning)}\n" in text for code in ExitCode)


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_command_of_a_program_has_its_section(program: str) -> None:
    command = command_line(program)
    text = page(program, command, "0")
    names = [name for name, _ in commands(top_context(program, command))]
    assert names
    assert [name for name in names if f"\n.SS {escape(name)}\n" not in text] == []


def test_markdown_becomes_troff() -> None:
    text = "A `-v` [page](X.md).\n\n## Two words\n\n- one\n  line\n- **two**"
    table = "| a | b |\n| - | - |\n| `x` | y |"
    assert list(markdown(f"{text}\n\n{table}")) == [
        ".PP\nA \\fB\\-v\\fP page.",
        ".SH TWO WORDS",
        ".IP \\(bu 3\none line",
        ".IP \\(bu 3\n\\fBtwo\\fP",
        ".TP\n\\fBx\\fP\ny",
    ]
    assert list(markdown("    .a\n    b")) == [".PP\n.nf\n\\&.a\nb\n.fi"]


def test_huai_rsync_has_a_page_with_all_that_its_help_cannot_say() -> None:
    text = dict(pages("0"))["huai-rsync.1"]
    for name in SETTINGS:
        assert f"\n\\fB{escape(name)}\\fP\n" in text
    sections = ["NAME", "SYNOPSIS", "DESCRIPTION", "FILES", "EXAMPLES"]
    sections += ["OPTIONS", "ENVIRONMENT", "EXIT STATUS", "SEE ALSO"]
    assert re.findall(r"\n\.SH (.*)", text)[-6:] == sections[-6:]
    assert [each for each in sections if f"\n.SH {each}\n" not in text] == []
    options = text.split("\n.SH OPTIONS\n")[1].split("\n.SH ")[0]
    names = {name.strip("-=") for name in re.findall(r"\\fB(.*?)\\fP", options.replace("\\-", "-"))}
    assert names == {*OPTIONS}
    statuses = text.split("\n.SH EXIT STATUS\n")[1]
    assert [code for code in ExitCode if f" {code} {escape(code.name)}" not in statuses] == []


def test_every_page_leads_to_the_others() -> None:
    assert set(SEE_ALSO) == {*PROGRAMS, *WRITTEN}
    assert all("\n.SH SEE ALSO\n" in text for _, text in pages("0"))
