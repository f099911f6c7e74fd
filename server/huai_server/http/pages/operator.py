"""The operator's page: connections, slow requests, last runs, disk use, and what expires.

Reads folders in a thread.  It shows what the server and its state root record anyway.
"""

import asyncio
import math
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from fastapi import Response

from huai_program.notify.notifier import Streak, load
from huai_schema.errors import ExitCode, HuaiError
from huai_server.http.metrics.slow import KEPT, LEAST_SECONDS
from huai_server.http.pages.rendering import Page
from huai_server.http.pages.status import ModuleRow, Now, module_row
from huai_server.http.webhooks.keeper import Delivery
from huai_server.state.paths import ModulePlaces
from huai_server.state.runs import Run, read_runs
from huai_server.state.tokens import Token, read_tokens
from huai_server.store.disk_use import DiskUse, disk_use

_WORKS = ("commit", "scrub", "publish")
_RUNS = 60
"""The most runs on the page, and the most tokens."""
_MODULES = 40
"""The most modules on the page."""
_T = TypeVar("_T")


class Upkeep(NamedTuple):
    """The record in the folder of a module."""

    use: DiskUse
    failures: Mapping[str, Streak]
    """The failed runs by command, until one succeeds; recorded if `[notify]` is configured."""


class OperatorRow(NamedTuple):
    """A module as the page shows it."""

    module: ModuleRow
    upkeep: Upkeep | None
    """None if the server may not read the folder."""
    clients: int | None
    """Connected clients of plain rsync; None if unknown."""


class RunRow(NamedTuple):
    """A run of a command, or a delivery to a web hook."""

    module: str
    work: str
    """The command, or the scheme and host of the web hook."""
    run: Run


async def operator_page(page: Page, modules: Mapping[str, Path], start: int, now: Now) -> Response:
    """Return the page of an operator who may see these modules; rows begin with number `start`."""
    names = sorted(modules)[start : start + _MODULES]
    places = {name: ModulePlaces(repository.parent) for name, repository in modules.items()}

    def read() -> tuple[
        Mapping[str, Upkeep | None],
        Mapping[str, Mapping[str, Run]],
        Sequence[Token] | None,
        int | None,
    ]:
        """Return what folders record: by module, of tokens, and the free bytes; None if unknown."""
        root = next((each.root for each in places.values()), None)
        upkeep = {name: _read_or_none(partial(_read_upkeep, places[name])) for name in names}
        last = {
            name: _read_or_none(partial(read_runs, each)) or {} for name, each in places.items()
        }
        if root is None:
            return upkeep, last, (), None
        tokens = _read_or_none(partial(_read_tokens, root, modules))
        usage = _read_or_none(partial(shutil.disk_usage, root))
        return upkeep, last, tokens, usage and usage.free

    upkeep, last, tokens, free = await asyncio.to_thread(read)
    rows = [
        OperatorRow(
            await module_row(page, name, modules[name], now),
            upkeep[name],
            now.facts.fallback_clients(name),
        )
        for name in names
    ]
    traffic, git = now.sources.traffic, now.sources.git.transfers
    runs = _runs(last, now.webhooks.deliveries(modules))
    hidden = now.registry.served().private.keys() - modules.keys()
    # A module that is no longer served may have been private.
    slow = [each for each in traffic.slow.slowest() if each.module in {"", *modules}]
    values = {
        "rows": rows,
        "start": start,
        "later": start + _MODULES if start + _MODULES < len(modules) else None,
        "runs": runs[:_RUNS],
        "more_runs": len(runs) - len(runs[:_RUNS]),
        "least": LEAST_SECONDS,
        "slow": [each for each in slow if not _names(each.path, hidden)][:KEPT],
        "tokens": tokens and tokens[:_RUNS],
        "more_tokens": len(tokens or ()) - len((tokens or ())[:_RUNS]),
        "free": free,
        "connections": now.sources.connections,
        "fetches": traffic.running["git"] + traffic.running["content"],
        "subscribers": traffic.running["events"],
        "git": git,
        "clients": sum(now.facts.fallback_clients(name) or 0 for name in modules),
    }
    return page.render("operator.html", values)


def _read_or_none(read: Callable[[], _T]) -> _T | None:
    """Return the result of `read`; None if the server may not read that."""
    try:
        return read()
    except (OSError, HuaiError):
        return None


def _read_upkeep(places: ModulePlaces) -> Upkeep:
    """Return disk use and failures of a module."""
    streaks = {work: load(places.notified(work)) for work in _WORKS}
    # A run that is not over counts as failed.
    failures = {work: each for work, each in streaks.items() if each.failed > each.running}
    return Upkeep(disk_use(places), failures)


def _runs(last: Mapping[str, Mapping[str, Run]], deliveries: Sequence[Delivery]) -> list[RunRow]:
    """Return the last runs and deliveries, failed ones first, then the newest first."""
    rows = [RunRow(name, work, run) for name, runs in last.items() for work, run in runs.items()]
    for delivery in deliveries:
        code = ExitCode.NETWORK if delivery.error else ExitCode.OK
        run = Run(delivery.begun, delivery.seconds, code, delivery.error)
        rows.append(RunRow(delivery.module, delivery.origin, run))
    return sorted(rows, key=lambda row: (not row.run.exit_code, -row.run.begun))


def _names(path: str, modules: Collection[str]) -> bool:
    """Return True if a part of `path` is the name of one of `modules`, or of its repository."""
    return any(part.removesuffix(".git") in modules for part in path.split("/"))


def _read_tokens(root: Path, modules: Mapping[str, Path]) -> list[Token]:
    """Return the tokens of these modules, the first to expire first."""
    tokens = [each for each in read_tokens(root) if not modules.keys().isdisjoint(each.modules)]
    return sorted(tokens, key=lambda token: token.expires or math.inf)
