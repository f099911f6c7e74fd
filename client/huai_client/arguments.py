"""Options that several commands of `huai-client` share."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def json_option(function: F) -> F:
    """`--json`, which every command has."""
    return click.option("--json", "as_json", is_flag=True, help="Print results as lines of JSON.")(
        function
    )


def wait_option(function: F) -> F:
    """`--wait`, for what takes the module's lock."""
    return click.option(
        "--wait",
        type=click.FloatRange(min=0),
        default=0.0,
        metavar="SECONDS",
        help="How long to wait for another run of this module to end.",
    )(function)


def sync_options(function: F) -> F:
    """What `sync` and `plan` have in common."""
    options = (
        click.option(
            "--max-delete",
            metavar="N|N%",
            help="Allow this many deletions: a count, or a share of the entries (which never stops "
            "fewer than 1000). Default 10%, or what client.toml says.",
        ),
        click.option(
            "--adopt",
            is_flag=True,
            help="Compare the whole tree with the metadata, as for a tree that was never synced.",
        ),
        click.option(
            "--delete-strangers",
            is_flag=True,
            help="Where the whole tree is compared, delete what no snapshot names.",
        ),
        click.option(
            "--accept-rollback", is_flag=True, help="Go back if the upstream's serial went back."
        ),
        wait_option,
    )
    return _with(options, function)


def transfer_options(function: F) -> F:
    """What of client.toml can be said for one run."""
    options = (
        click.option(
            "--streams",
            type=click.IntRange(1, 64),
            metavar="N",
            help="How many runs of rsync there are at a time (default 2).",
        ),
        click.option(
            "--batch-files",
            type=click.IntRange(1),
            metavar="N",
            help="How many files one run of rsync fetches (default 1000).",
        ),
        click.option(
            "--batch-size",
            type=click.IntRange(1),
            metavar="BYTES",
            help="How much one run of rsync fetches (default 1073741824).",
        ),
        click.option(
            "--bwlimit",
            type=click.IntRange(0),
            metavar="KIB/S",
            help="Limit the bandwidth of all streams together (default 0: no limit).",
        ),
        click.option(
            "--rsync-option",
            "rsync_options",
            multiple=True,
            metavar="ARG",
            help="One more option for rsync, such as --compress. May be given several times.",
        ),
    )
    return _with(options, function)


def _with(options: Sequence[Callable[[F], F]], function: F) -> F:
    """`function` with options that --help lists in this order."""
    for option in reversed(options):
        function = option(function)
    return function
