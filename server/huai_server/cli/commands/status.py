"""`huai-server status`: show the state of modules."""

import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

import click

from huai_program.locking import holder
from huai_schema.errors import ExitCode, worst_exit_code
from huai_server.cli.console import Console
from huai_server.cli.options import console_options, modules_argument
from huai_server.cli.status_report import (
    content_state,
    content_text,
    content_values,
    relay_state,
    relay_text,
    relay_values,
    status_line,
    status_values,
    watched_text,
    watched_values,
)
from huai_server.config.load import load
from huai_server.state.paths import module_places, unconfined_file
from huai_server.store.module_state import module_state
from huai_server.watch.record import read_watched


@click.command()
@modules_argument
@click.option(
    "--watch",
    is_flag=True,
    help="Show a live table on the terminal, refreshed every two seconds, until q is pressed.",
)
@console_options()
def command(root: Path, names: tuple[str, ...], watch: bool, console: Console) -> int:
    """Show what is committed of the modules NAME, or of all.

    On a terminal it is a table, with the details of the modules NAME, or of those with a problem.
    A module that cannot be read is shown as such, next to the others, and decides the exit code.
    """
    if watch:
        if console.as_json:
            raise click.UsageError("--watch does not go with --json")
        from huai_program.live_view import show_live
        from huai_server.cli.live_status import status_table

        show_live(f"huai-server: {root}", partial(status_table, root, names))
        return ExitCode.OK
    config = load(root)
    modules = {name: config.module(name) for name in names or sorted(config.modules)}
    if not modules:
        console.result(f"no module yet; next: huai-server add NAME PATH (state root {root})")
    _warn_unconfined(unconfined_file(Path(config.fallback.folder)), console)
    shows_table = bool(modules) and not (console.as_json or console.quiet) and sys.stdout.isatty()
    codes, rows, lines = [], [], []
    for name, module in modules.items():
        places = module_places(root, name)
        state, watched = module_state(places), read_watched(places)
        if state.problem:
            codes.append(state.problem.exit_code)
        content = content_state(name, module, places, state)
        relay = relay_state(name, module)
        console.event(
            "module",
            **status_values(name, module, state),
            **content_values(content),
            **watched_values(watched),
            **relay_values(relay),
        )
        if shows_table:
            from huai_server.cli.live_status import status_row  # pipes start without it

            rows.append(status_row(name, state, watched, len(content.scrub.damage)))
        problems = state.problem, state.pending, content.scrub.damage, relay and relay.problem
        if names or not shows_table or any(problems):
            line = status_line(name, module, state) + content_text(content)
            lines.append(line + watched_text(watched) + relay_text(relay, state))
    if shows_table:
        from huai_program.live_view import Table, print_table
        from huai_server.cli.live_status import HEADER

        print_table(Table(HEADER, rows))
    for line in lines:
        console.result(line)
    return worst_exit_code(codes)


def _warn_unconfined(mark: Path, console: Console) -> None:
    """Print the warning that the file `mark` of the fallback holds, if its process still runs."""
    if holder(mark):
        with suppress(OSError):
            reason = mark.read_text(encoding="utf-8").partition("\n")[2]
            console.warning(f"fallback: connections are not confined: {reason}")
