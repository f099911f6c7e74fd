"""`huai-server serve` as a process of its own, on a port of its own."""

import contextlib
import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.committing import ENVIRONMENT, NAME, SECONDS, git, server_environment
from tests.support.prepared import SERVER, Started


@dataclass
class Serving:
    """A server process, and what it said."""

    process: subprocess.Popen[str]
    port: int
    log: Path
    scheme: str = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=SECONDS) as answer:  # noqa: S310 (our own)
            return json.load(answer)

    def modules(self) -> dict[str, Any]:
        return {each["name"]: each for each in self.get("/api/v1/modules")["modules"]}

    def clone(self, place: Path, name: str = NAME) -> str:
        """The head of a fresh clone."""
        command = ["git", "clone", "--quiet", "--bare", f"{self.url}/git/{name}.git", str(place)]
        done = subprocess.run(
            command, env=ENVIRONMENT, capture_output=True, timeout=SECONDS, check=False
        )
        assert done.returncode == 0, (done.stderr, self.log.read_text())
        return git(place, "rev-parse", "main")

    def wait_until(self, happens: Callable[[], bool]) -> None:
        """Wait for what the server does a moment later."""
        end = time.monotonic() + SECONDS
        while not happens():
            assert time.monotonic() < end, self.log.read_text()
            time.sleep(0.02)

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(SECONDS)


@contextlib.contextmanager
def serving(root: Path, program: str | None = None) -> Iterator[Serving]:
    log = root.parent / "log"
    arguments = ["--root", str(root), "serve", "--port", "0", "--json"]
    environment = server_environment()
    with log.open("w") as errors:
        process: subprocess.Popen[str]
        if program is None:
            process = Started(
                SERVER, arguments, environment, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        else:
            process = subprocess.Popen(
                [sys.executable, "-c", program, *arguments],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, log.read_text()
        event = json.loads(line)
        assert (event["v"], event["type"]) == (1, "listening"), event
        assert event["host"] == "127.0.0.1"
        yield Serving(process, event["port"], log, event["scheme"])
    finally:
        process.kill()
        process.wait(SECONDS)
        process.stdout.close()
        assert "Traceback" not in log.read_text()
