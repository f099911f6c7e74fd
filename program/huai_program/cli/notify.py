"""The command `notify`: sends a test message, which shows whether messages arrive."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from huai_program.cli.options import json_option
from huai_program.ending import print_json
from huai_schema.errors import ExitCode, HuaiError

if TYPE_CHECKING:
    from huai_program.notify.settings import Notify


class NoRecipientsError(HuaiError):
    """The configuration has no table `[notify]`."""

    exit_code = ExitCode.CONFIG


def notify_command(program: str, load: Callable[[Path], "Notify | None"]) -> click.Command:
    """Return the command `notify` of `program`, which sends a test message.

    `load` reads the table `[notify]` of a root; the command raises `NoRecipientsError` without it.
    """

    @click.command()
    @json_option
    @click.pass_obj
    def command(root: Path, as_json: bool) -> int:
        """Send a test message to all recipients of [notify].

        Ends with exit code 10 if one of them did not get it.
        """
        from huai_program.notify.notification import Notification, Subject
        from huai_program.notify.notifier import this_host
        from huai_program.notify.send import send_all, ways

        notify = load(root)
        if notify is None:
            raise NoRecipientsError(
                f"{root}: the configuration has no table [notify]",
                hint="MONITORING.md describes it",
            )
        about = Subject(program, this_host(), "", "test")
        failures = send_all(notify, Notification(about, 0, int(time.time()), None))
        for key, _ in ways(notify):
            reason = failures.get(key, "")
            if as_json:
                print_json("notified", recipient=key, reason=reason)
            else:
                click.echo(f"notify.{key}: {reason or 'delivered'}")
        return ExitCode.NETWORK if failures else ExitCode.OK

    return command
