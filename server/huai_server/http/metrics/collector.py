"""`/metrics`, the metrics of a server: their names, meanings and sources.

`docs/MONITORING.md` lists them; a test compares.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from fastapi import APIRouter, Request, Response
from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from huai_schema import __version__
from huai_schema.errors import HuaiError
from huai_server.http.access import Access
from huai_server.http.asgi.connections import ConnectionLimit
from huai_server.http.git.app import GitApp
from huai_server.http.metrics.traffic import Traffic
from huai_server.http.mirrors.known import KnownMirrors
from huai_server.http.module_facts import ModuleFacts
from huai_server.mirrors.states import MirrorState
from huai_server.store.repository import Head


class Sources(NamedTuple):
    """The counters of a running server."""

    traffic: Traffic
    git: GitApp
    connections: ConnectionLimit


class ModuleNumbers(NamedTuple):
    """The state of a module."""

    head: Head | None
    """The newest commit; None before the first one, or if it cannot be read."""
    readable: bool
    damaged: int = 0
    """Files that the last scrub found damaged."""
    undigested: int | None = None
    """Files without a digest yet; None without late digests."""
    fallback_clients: int | None = None
    """Clients of the fallback's daemon; None if unknown."""
    mirrors: tuple[MirrorState, ...] = ()


_OF_HEADS: tuple[tuple[str, str, Callable[[Head], int | None]], ...] = (
    ("serial", "Serial of the newest commit.", lambda head: head.info.serial),
    ("commit_timestamp_seconds", "When the newest commit was made.", lambda head: head.time),
    ("entries", "Entries of the newest commit.", lambda head: head.info.totals.entries),
    ("bytes", "Bytes of all files of the newest commit.", lambda head: head.info.totals.bytes),
    (
        "changed_entries",
        "Entries that the newest commit added, removed, changed or moved.",
        lambda head: head.info.counts.total,
    ),
    (
        "valid_until_timestamp_seconds",
        "Until when the signature of the newest commit holds; only signed ones have it.",
        lambda head: head.valid_until or None,
    ),
)
_OF_MODULES: tuple[tuple[str, str, Callable[[ModuleNumbers], int | None]], ...] = (
    ("module_readable", "0: its metadata cannot be read.", lambda module: module.readable),
    (
        "module_damaged_files",
        "Files that the last scrub found damaged.",
        lambda module: module.damaged,
    ),
    (
        "module_undigested_files",
        "Files that have no digest yet, of modules whose digests come later.",
        lambda module: module.undigested,
    ),
    (
        "fallback_clients",
        "Clients that the rsync daemon of the fallback serves.",
        lambda module: module.fallback_clients,
    ),
)


_OF_MIRRORS: tuple[tuple[str, str, Callable[[MirrorState], int | None]], ...] = (
    ("mirror_lag_seconds", "For how long a newer commit has existed.", lambda one: one.lag),
    ("mirror_offered", "1: clients are sent to the mirror.", lambda one: one.offered),
    (
        "mirror_attestation_timestamp_seconds",
        "When the mirror last attested what it holds.",
        lambda one: one.attestation.time,
    ),
    (
        "probe_trusted",
        "0: the last probe found files missing, or other content than the mirror attests.",
        lambda one: one.probe.trusted if one.probe else None,
    ),
    (
        "probe_timestamp_seconds",
        "When the mirror was last probed.",
        lambda one: one.probe.time if one.probe else None,
    ),
)


class ServerCollector(Collector):
    """A collector of the numbers of one moment."""

    def __init__(self, sources: Sources, modules: Mapping[str, ModuleNumbers]) -> None:
        self._sources = sources
        self._modules = modules

    def collect(self) -> Iterable[Metric]:
        """Yield each metric, with a value for each module or mirror that has one."""
        yield _gauge("huai_server_info", "1, with the version.", "version", {__version__: 1})
        for name, meaning, of_module in _OF_MODULES:
            values = {each: of_module(module) for each, module in self._modules.items()}
            yield _gauge(f"huai_{name}", meaning, "module", values)
        heads = {name: module.head for name, module in self._modules.items() if module.head}
        for name, meaning, of_head in _OF_HEADS:
            values = {each: of_head(head) for each, head in heads.items()}
            yield _gauge(f"huai_module_{name}", meaning, "module", values)
        for name, meaning, of_mirror in _OF_MIRRORS:
            yield self._of_mirrors(f"huai_{name}", meaning, of_mirror)
        yield from self._of_traffic()

    def _of_mirrors(
        self, name: str, meaning: str, of_mirror: Callable[[MirrorState], int | None]
    ) -> Metric:
        """Return a gauge by module and mirror; mirrors with None are left out."""
        family = GaugeMetricFamily(name, meaning, labels=["module", "mirror"])
        for module, numbers in self._modules.items():
            for mirror in numbers.mirrors:
                number = of_mirror(mirror)
                if number is not None:
                    family.add_metric([module, mirror.mirror], number)
        return family

    def _of_traffic(self) -> Iterator[Metric]:
        """Yield the metrics of requests, git and connections."""
        traffic, git, connections = self._sources
        requests = CounterMetricFamily(
            "huai_http_requests", "Responses started.", labels=["kind", "status"]
        )
        for (kind, status), count in sorted(traffic.requests.items()):
            requests.add_metric([kind, str(status)], count)
        yield requests
        meaning = "Bytes of response bodies."
        yield _counter("huai_http_sent_bytes", meaning, "kind", traffic.sent_bytes)
        meaning = "Responses in progress."
        yield _gauge("huai_http_requests_running", meaning, "kind", traffic.running)
        meaning = "Processes of git that make packs."
        yield GaugeMetricFamily("huai_git_transfers_running", meaning, git.transfers.running)
        meaning = "Requests that wait for such a process."
        yield GaugeMetricFamily("huai_git_transfers_waiting", meaning, git.transfers.waiting)
        meaning = "Open connections, without subscribers."
        yield GaugeMetricFamily("huai_connections", meaning, connections.count)
        meaning = "Connections that were closed at a limit: that of one address, or that of all."
        yield _counter("huai_connections_refused", meaning, "limit", connections.refused)


def _gauge(name: str, meaning: str, label: str, values: Mapping[str, int | None]) -> Metric:
    """Return a gauge with the `values` by the value of `label`; None is left out."""
    family = GaugeMetricFamily(name, meaning, labels=[label])
    for key, number in sorted(values.items()):
        if number is not None:
            family.add_metric([key], number)
    return family


def _counter(name: str, meaning: str, label: str, values: Mapping[str, int]) -> Metric:
    """Return a counter with the `values` by the value of `label`."""
    family = CounterMetricFamily(name, meaning, labels=[label])
    for key, number in sorted(values.items()):
        family.add_metric([key], number)
    return family


def router(
    facts: ModuleFacts, known_mirrors: KnownMirrors, sources: Sources, access: Access
) -> APIRouter:
    """Return the route `/metrics`."""
    routes = APIRouter(tags=["health"])

    @routes.get("/metrics", response_class=Response, responses={200: {"content": _TEXT}})
    async def metrics(request: Request) -> Response:
        """Metrics for Prometheus: as its text, or as OpenMetrics."""
        modules = {
            name: await _read_numbers(facts, known_mirrors, name, repository)
            for name, repository in sorted(access.modules(request.scope, "metrics").items())
        }
        registry = CollectorRegistry()
        registry.register(ServerCollector(sources, modules))
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        encode, media_type = choose_encoder(request.headers.get("accept", ""))
        headers = {"Content-Type": media_type, "Cache-Control": "no-store", "Vary": "Accept"}
        return Response(encode(registry), headers=headers)

    return routes


_TEXT = {"text/plain": {"schema": {"type": "string"}}}


async def _read_numbers(
    facts: ModuleFacts, known_mirrors: KnownMirrors, name: str, repository: Path
) -> ModuleNumbers:
    """Return a module's numbers; `readable` is false if its repository is damaged."""
    damaged, clients = facts.damaged(name), facts.fallback_clients(name)
    try:
        head = await facts.head(name)
        mirrors = await known_mirrors.states(name, repository)
    except HuaiError:
        return ModuleNumbers(None, readable=False, damaged=damaged, fallback_clients=clients)
    undigested = await facts.undigested(name) if head else None
    return ModuleNumbers(head, True, damaged, undigested, clients, mirrors)  # noqa: FBT003
