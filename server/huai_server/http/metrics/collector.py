"""The metrics of a server: their names, meanings and sources.

`docs/MONITORING.md` lists them; a test compares.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from huai_schema import __version__
from huai_server.http.asgi.connections import ConnectionLimit
from huai_server.http.git.app import GitApp
from huai_server.http.metrics.traffic import Traffic
from huai_server.store.repository import Head

_OF_HEADS: tuple[tuple[str, str, Callable[[Head], int]], ...] = (
    ("serial", "Serial of the newest commit.", lambda head: head.info.serial),
    ("commit_timestamp_seconds", "When the newest commit was made.", lambda head: head.time),
    ("entries", "Entries of the newest commit.", lambda head: head.info.totals.entries),
    ("bytes", "Bytes of all files of the newest commit.", lambda head: head.info.totals.bytes),
    (
        "changed_entries",
        "Entries that the newest commit added, removed, changed or moved.",
        lambda head: head.info.counts.total,
    ),
)


class Sources(NamedTuple):
    """The counters of a running server."""

    traffic: Traffic
    git: GitApp
    connections: ConnectionLimit


class Module(NamedTuple):
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


_OF_MODULES: tuple[tuple[str, str, Callable[[Module], int | None]], ...] = (
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


class ServerCollector(Collector):
    """A collector of the numbers of one moment."""

    def __init__(self, sources: Sources, modules: Mapping[str, Module]) -> None:
        """`modules` has all modules by name."""
        self._sources = sources
        self._modules = modules

    def collect(self) -> Iterable[Metric]:
        """Yield each metric."""
        info = GaugeMetricFamily("huai_server_info", "1, with the version.", labels=["version"])
        info.add_metric([__version__], 1)
        yield info
        yield from self._of_modules()
        yield from self._of_requests()
        yield from self._of_git()
        yield from self._of_connections()

    def _of_modules(self) -> Iterator[Metric]:
        readable = GaugeMetricFamily(
            "huai_module_readable", "0: its metadata cannot be read.", labels=["module"]
        )
        for name, module in self._modules.items():
            readable.add_metric([name], module.readable)
        yield readable
        heads = {name: module.head for name, module in self._modules.items() if module.head}
        for suffix, meaning, value in _OF_HEADS:
            family = GaugeMetricFamily(f"huai_module_{suffix}", meaning, labels=["module"])
            for name, head in heads.items():
                family.add_metric([name], value(head))
            yield family
        signed = GaugeMetricFamily(
            "huai_module_valid_until_timestamp_seconds",
            "Until when the signature of the newest commit holds; only signed ones have it.",
            labels=["module"],
        )
        for name, head in heads.items():
            if head.valid_until:
                signed.add_metric([name], head.valid_until)
        yield signed
        for metric, meaning, count in _OF_MODULES:
            family = GaugeMetricFamily(f"huai_{metric}", meaning, labels=["module"])
            for name, module in self._modules.items():
                if (number := count(module)) is not None:
                    family.add_metric([name], number)
            yield family

    def _of_requests(self) -> Iterator[Metric]:
        traffic = self._sources.traffic
        requests = CounterMetricFamily(
            "huai_http_requests", "Responses started.", labels=["kind", "status"]
        )
        for (kind, status), count in sorted(traffic.requests.items()):
            requests.add_metric([kind, str(status)], count)
        yield requests
        sent_bytes = CounterMetricFamily(
            "huai_http_sent_bytes", "Bytes of response bodies.", labels=["kind"]
        )
        for kind, count in sorted(traffic.sent_bytes.items()):
            sent_bytes.add_metric([kind], count)
        yield sent_bytes
        running = GaugeMetricFamily(
            "huai_http_requests_running", "Responses in progress.", labels=["kind"]
        )
        for kind, count in sorted(traffic.running.items()):
            running.add_metric([kind], count)
        yield running

    def _of_git(self) -> Iterator[Metric]:
        git = self._sources.git
        yield GaugeMetricFamily(
            "huai_git_transfers_running",
            "Processes of git that make packs.",
            git.transfers.running,
        )
        yield GaugeMetricFamily(
            "huai_git_transfers_waiting",
            "Requests that wait for such a process.",
            git.transfers.waiting,
        )

    def _of_connections(self) -> Iterator[Metric]:
        connections = self._sources.connections
        yield GaugeMetricFamily(
            "huai_connections", "Open connections, without subscribers.", connections.count
        )
        refused = CounterMetricFamily(
            "huai_connections_refused",
            "Connections that were closed at a limit: that of one address, or that of all.",
            labels=["limit"],
        )
        for limit, count in sorted(connections.refused.items()):
            refused.add_metric([limit], count)
        yield refused
