"""The programs that are measured: huai's own, as installed, and their servers.

A program is started anew for every measurement: imports are part of what it costs.
"""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.support.processes import end_process

_BIN = Path(sys.executable).parent
_GRACE = 20


class Program(NamedTuple):
    """`huai-server` or `huai-client` with its state root."""

    name: str
    root: Path

    def command(self, *arguments: str | Path) -> list[str]:
        """What to start."""
        return [str(_BIN / self.name), "--root", str(self.root), *map(str, arguments)]

    def run(self, *arguments: str | Path) -> str:
        """Run a command that is not measured; its output, or an error with its words."""
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(
                f"{self.name} {arguments} ended with {done.returncode}: {done.stderr}"
            )
        return done.stdout


@contextlib.contextmanager
def serving(server: Program) -> Iterator[int]:
    """`huai-server serve`; yields its port."""
    process = subprocess.Popen(
        server.command("serve", "--host", "127.0.0.1", "--port", "0", "--json"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line:
            raise RuntimeError("huai-server serve did not start")
        yield int(json.loads(line)["port"])
    finally:
        end_process(process, _GRACE)
        process.stdout.close()
