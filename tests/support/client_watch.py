"""`huai-client watch` as a process, and what it says."""

import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from huai_client.config import load as client_config
from tests.support import json_events
from tests.support.processes import until
from tests.support.upstream import SECONDS, Downstream

QUICK = '\n[watch]\nspread = "0"\npoll = "1h"\n'


class Watching:
    """A watcher, and what it says."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.events: list[dict[str, Any]] = []
        self.errors = ""
        self._awaited: dict[str, int] = {}
        self._threads = [
            threading.Thread(target=self._read),
            threading.Thread(target=self._read_errors),
        ]
        for thread in self._threads:
            thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            self.events.extend(map(json.loads, lines))

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as lines:
            for line in lines:
                self.errors += line

    def count(self, kind: str, **values: object) -> int:
        return sum(
            each["type"] == kind and values.items() <= each.items() for each in list(self.events)
        )

    def wait(self, kind: str, **values: object) -> None:
        """Until it says this once more than at the last call for it."""
        key = f"{kind} {values}"
        past = self._awaited.setdefault(key, 0)
        until(lambda: self.count(kind, **values) > past)
        self._awaited[key] = self.count(kind, **values)

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        code = self.process.wait(SECONDS)
        for thread in self._threads:
            thread.join(SECONDS)
        return code


@contextmanager
def watching(down: Downstream, *names: str, **environment: str) -> Iterator[Watching]:
    watch = Watching(down.spawn("watch", "--json", *names, environment=environment))
    try:
        yield watch
    finally:
        if watch.process.poll() is None:
            watch.end()
        assert "Traceback" not in watch.errors, watch.errors
        wrong = {f for event in watch.events for f in json_events.faults("huai-client", event)}
        assert wrong == set()


def configure(down: Downstream, text: str = QUICK) -> None:
    path = client_config.config_path(down.root)
    path.write_text(path.read_text() + text)
