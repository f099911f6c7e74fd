"""Who is told that syncs of a module fail: `[notify]` of client.toml, around a sync.

Loaded only if there is such a table.
"""

from huai_client.cli.console import Console
from huai_client.metadata.http import MetadataUrl
from huai_client.mirror import Mirror
from huai_client.state.last_run import load
from huai_client.state.paths import ModulePlaces
from huai_schema.program.notify.notification import Subject
from huai_schema.program.notify.notifier import Notifier, this_host
from huai_schema.program.notify.settings import Notify


def notifier_of(notify: Notify, mirror: Mirror, console: Console) -> Notifier:
    """What tells of the syncs of `mirror`; `console` hears why somebody could not be told."""
    name = mirror.name
    about = Subject(
        program="huai-client",
        host=this_host(),
        module=name,
        work="sync",
        facts=(
            ("tree", mirror.config.dest),
            ("upstream", str(MetadataUrl(mirror.config.urls[0]))),
        ),
        advice=f"`huai-client log {name}` and `huai-client doctor {name}` tell more.",
    )

    def warn(reason: str) -> None:
        console.error(f"{name}: {reason}")
        console.event("warning", module=name, message=reason)

    return Notifier(notify, mirror.paths.notified, about, warn)


def why_it_failed(places: ModulePlaces) -> str:
    """Why the run failed that has just ended."""
    last = load(places.last)
    return last.reason if last else ""
