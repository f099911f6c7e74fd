"""Who is told that commits and scrubs of a module fail: `[notify]` of server.toml."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from huai_server.cli.console import Console
from huai_server.config import load
from huai_server.paths import module_places

_ADVICE = {
    "commit": "`huai-server status {}` tells how the module stands.",
    "scrub": "`huai-server scrub {}` names what is damaged, and what to do.",
}


def notifying(
    console: Console,
    root: Path,
    name: str,
    work: Literal["commit", "scrub"],
    run: Callable[[], int],
    reason: Callable[[], str],
) -> int:
    """The exit code of `run`, which is counted if it fails; `reason` says why it is not 0.

    Damage is told of at once, a commit that fails as often as the configuration says.
    """
    config = load(root)
    if config.notify is None:
        return run()
    from huai_schema.program.notify.notification import Subject
    from huai_schema.program.notify.notifier import Notifier, this_host

    notify = config.notify if work == "commit" else replace(config.notify, after=1)
    about = Subject(
        program="huai-server",
        host=this_host(),
        module=name,
        work=work,
        facts=(("tree", config.module(name).path),),
        advice=_ADVICE[work].format(name),
    )
    path = module_places(root, name).notified(work)
    notifier = Notifier(notify, path, about, lambda text: console.error(f"{name}: {text}"))
    return notifier.counted(run, reason)
