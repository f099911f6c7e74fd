"""Who is told that work on a module fails, and of its signature: `[notify]` of server.toml."""

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
    "commit": "`huai-server status {}` tells how the module stands.",
    "scrub": "`huai-server scrub {}` names what is damaged, and what to do.",
    "publish": "`huai-server publish {}` writes what is missing.",
    "signature": "`huai-server commit {}` signs anew.",
}


def notifying(
    console: Console,
    root: Path,
    name: str,
    work: Literal["commit", "scrub", "publish"],
    run: Callable[[], int],
    reason: Callable[[], str],
) -> int:
    """The exit code of `run`, which is counted if it fails; `reason` says why it is not 0.

    Damage is told of at once, a commit that fails as often as the configuration says.
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
    return notifier.counted(run, reason)


def tell_of_signature(
    console: Console, config: ServerConfig, name: str, since: int, reason: str
) -> bool:
    """Tell that a signature runs out, or, with an empty `reason`, was renewed (`ExpiryWatch`)."""
    if config.notify is None:
        return False
    from huai_program.notify.notification import Failure, Notification
    from huai_program.notify.send import tell

    hint = "find out why nothing commits: a timer that is off, a key that is gone"
    failure = Failure(int(ExitCode.STALE), reason, hint) if reason else None
    told = Notification(_subject(config, name, "signature"), 1, since, failure)
    return tell(config.notify, told, lambda text: console.error(f"{name}: {text}"))


def _subject(config: ServerConfig, name: str, work: Work) -> "Subject":
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
