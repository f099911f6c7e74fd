"""Notifications of failed work on a module, and of its signature: `[notify]` of server.toml."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from huai_schema.errors import ExitCode
from huai_server.cli.console import Console
from huai_server.config.load import ServerConfig, load
from huai_server.state.paths import module_places

if TYPE_CHECKING:
    from huai_program.notify.notification import Subject

Work = Literal["commit", "scrub", "publish", "signature"]
_ADVICE = {
    "commit": "`huai-server status {}` shows the state of the module.",
    "scrub": "`huai-server scrub {}` names the damaged files, and what to do.",
    "publish": "`huai-server publish {}` writes what is missing.",
    "signature": "`huai-server commit {}` renews it.",
}


def run_and_notify(
    console: Console,
    root: Path,
    name: str,
    work: Literal["commit", "scrub", "publish"],
    run: Callable[[], int],
    reason: Callable[[], str],
) -> int:
    """Call `run` and return its exit code; count failures, and send a notification if it is due.

    `reason` returns the reason of a code other than 0.  Damage is reported at once, other failures
    after as many in a row as are configured.  An error of `run` is counted too, and raised. Without
    `[notify]` nothing is counted or sent.
    """
    config = load(root)
    if config.notify is None:
        return run()
    from msgspec.structs import replace

    from huai_program.notify.notifier import Notifier

    notify = replace(config.notify, after=1) if work == "scrub" else config.notify
    about = _subject(config, name, work)
    path = module_places(root, name).notified(work)
    notifier = Notifier(notify, path, about, lambda text: console.error(f"{name}: {text}"))
    return notifier.run_unlocked(run, reason)


def notify_of_signature(
    console: Console, config: ServerConfig, name: str, since: int, reason: str
) -> bool:
    """Send a notification that a signature expires, or, with an empty `reason`, was renewed.

    `since` is the time of detection, in seconds since the epoch.  Returns True if it was delivered;
    failures to do so are printed.
    """
    if config.notify is None:
        return False
    from huai_program.notify.notification import Failure, Notification
    from huai_program.notify.send import notify_all

    hint = "find out why nothing commits: a disabled timer, a missing key"
    failure = Failure(int(ExitCode.STALE), reason, hint) if reason else None
    notification = Notification(_subject(config, name, "signature"), 1, since, failure)
    return notify_all(config.notify, notification, lambda text: console.error(f"{name}: {text}"))


def _subject(config: ServerConfig, name: str, work: Work) -> "Subject":
    """Return a notification's subject: the module's `work` on this host, its tree, and advice."""
    from huai_program.notify.notification import Subject
    from huai_program.notify.notifier import this_host

    return Subject(
        program="huai-server",
        host=this_host(),
        module=name,
        work=work,
        facts=(("tree", config.module(name).path),),
        advice=_ADVICE[work].format(name),
    )
