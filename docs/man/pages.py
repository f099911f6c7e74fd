"""Makes man pages from the command lines, so that they agree with `--help`.

`huai-rsync` has only rsync's help text: its page is made from its page in Markdown and its tables.
The pages of the configuration files are made from those in Markdown.

`python -m docs.man.pages FOLDER` writes one page for each program and file.  Builds are
reproducible: a page has no date.  Rule to keep: sentences about a command or a key belong into its
help text or its page, not here.
"""

import inspect
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click

from docs.man.rsync_tables import table_sections
from docs.man.troff import escape, markdown
from huai_schema.errors import ExitCode

PROGRAMS = {"huai-client": "huai_client.cli.main", "huai-server": "huai_server.cli.main"}
"""The module of each program's `command_line`."""
_DOCS = Path(__file__).parents[1]
WRITTEN = {"huai-rsync": _DOCS / "HUAI-RSYNC.md"}
"""The programs whose page is in Markdown."""
FILES = {
    "huai-client.toml": ("CLIENT-CONFIGURATION.md", "what huai-client mirrors, and how"),
    "huai-server.toml": ("SERVER-CONFIGURATION.md", "what huai-server commits and serves"),
}
"""The source and the summary of the page of each configuration file."""
SEE_ALSO = {
    "huai-client": ("huai-rsync", "huai-server", "rsync"),
    "huai-server": ("huai-client", "rsync"),
    "huai-rsync": ("huai-client", "huai-server", "rsync"),
}


def paragraphs(text: str) -> Iterator[str]:
    """Yield paragraphs by click's rules: split at blank lines, verbatim after a lone backspace."""
    for block in inspect.cleandoc(text).partition("\f")[0].split("\n\n"):
        verbatim = block.removeprefix("\b\n")
        if verbatim != block:
            yield f".PP\n.nf\n{escape(verbatim)}\n.fi"
        elif block.strip():
            yield f".PP\n{escape(block.strip())}"


def options(context: click.Context) -> Iterator[str]:
    """Yield a tagged paragraph for each option, and for arguments with a help text."""
    for parameter in context.command.get_params(context):
        record = parameter.get_help_record(context)
        if record and record[1]:
            yield f".TP\n\\fB{escape(record[0])}\\fP\n{escape(record[1])}"


def commands(context: click.Context) -> Iterator[tuple[str, click.Context]]:
    """Yield each command at any depth, with its full name."""
    group = context.command
    if isinstance(group, click.Group):
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if command is not None and not command.hidden:
                below = click.Context(command, info_name=name, parent=context)
                yield below.command_path, below
                yield from commands(below)


def usage(context: click.Context) -> str:
    """Return the usage line."""
    pieces = " ".join(context.command.collect_usage_pieces(context))
    return f".PP\n\\fB{escape(context.command_path)}\\fP {escape(pieces)}"


def environment(contexts: list[click.Context]) -> Iterator[str]:
    """Yield a paragraph for each variable that sets an option."""
    variables = {
        parameter.envvar: parameter.opts[0]
        for context in contexts
        for parameter in context.command.params
        if isinstance(parameter.envvar, str)
    }
    for name, option in sorted(variables.items()):
        yield f".TP\n\\fB{escape(name)}\\fP\nthe default of {escape(option)}"


def exit_codes() -> Iterator[str]:
    """Yield a paragraph for each exit code."""
    for code in ExitCode:
        yield f".TP\n\\fB{code.value}\\fP\n{escape(code.meaning)}"


def page(program: str, command: click.Command, release: str) -> str:
    """Return the page of one program."""
    top = top_context(program, command)
    below = list(commands(top))
    summary = command.get_short_help_str(limit=100).rstrip(".")
    lines = [
        *head(program, 1, summary, release),
        ".SH SYNOPSIS",
        usage(top),
        ".SH DESCRIPTION",
        *paragraphs(command.help or ""),
        ".SH OPTIONS",
        *options(top),
        ".SH COMMANDS",
    ]
    for name, context in below:
        help_text = paragraphs(context.command.help or "")
        lines += [f".SS {escape(name)}", usage(context), *help_text, *options(context)]
    lines += [".SH EXIT STATUS", *exit_codes()]
    variables = list(environment([top, *(context for _, context in below)]))
    if variables:
        lines += [".SH ENVIRONMENT", *variables]
    if program in SEE_ALSO:
        lines.append(see_also(program))
    return "\n".join(lines) + "\n"


def head(name: str, part: int, summary: str, release: str) -> tuple[str, str]:
    """Return the title and the summary of a page in a part of the manual."""
    return (
        f'.TH {escape(name).upper()} {part} "" "huai {release}" "huai"',
        f".SH NAME\n{escape(name)} \\- {escape(summary)}",
    )


def see_also(program: str) -> str:
    """Return the section of related pages."""
    return ".SH SEE ALSO\n" + ", ".join(f"{escape(name)}(1)" for name in SEE_ALSO[program])


def written_page(program: str, text: str, release: str) -> str:
    """Return the page of a program from its page in Markdown, whose title must name it."""
    title, _, rest = text.partition("\n")
    name, _, summary = title.removeprefix("# ").partition(": ")
    if name != program:
        raise ValueError(title)
    lines = [
        *head(program, 1, summary, release),
        f".SH SYNOPSIS\n.PP\n\\fB{escape(program)}\\fP [OPTION]... SRC DEST",
        ".SH DESCRIPTION",
        *markdown(rest),
        *table_sections(),
        see_also(program),
    ]
    return "\n".join(lines) + "\n"


def file_page(name: str, release: str) -> str:
    """Return the page of one configuration file."""
    source, summary = FILES[name]
    lines = [
        *head(name, 5, summary, release),
        *markdown((_DOCS / source).read_text(encoding="utf-8")),
        f".SH SEE ALSO\n{escape(name.removesuffix('.toml'))}(1)",
    ]
    return "\n".join(lines) + "\n"


def pages(release: str) -> Iterator[tuple[str, str]]:
    """Yield the file name and the text of each page."""
    for program in PROGRAMS:
        yield f"{program}.1", page(program, command_line(program), release)
    for program, path in WRITTEN.items():
        yield f"{program}.1", written_page(program, path.read_text(encoding="utf-8"), release)
    for name in FILES:
        yield f"{name}.5", file_page(name, release)


def command_line(program: str) -> click.Command:
    """Return the click command of a program."""
    command = import_module(PROGRAMS[program]).command_line
    if not isinstance(command, click.Command):  # the module's type is not known to mypy
        raise TypeError(program)
    return command


def top_context(program: str, command: click.Command, **settings: Any) -> click.Context:
    """Return the context of a program; click caches the --help of the first one."""
    return click.Context(command, info_name=program, **{**command.context_settings, **settings})


def main(folder: Path) -> None:
    """Write every page."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages(version("huai")):
        path = folder / name
        path.write_text(text, encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
