"""Options that several commands of `huai-client` share."""

from collections.abc import Callable
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
            help="Allow this many deletions, as a count or a share of the entries.",
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
            "--accept-rollback", is_flag=True, help="Accept metadata that is older than before."
        ),
        wait_option,
    )
    for option in reversed(options):
        function = option(function)
    return function
