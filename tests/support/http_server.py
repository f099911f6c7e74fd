"""The server process of the HTTP tests: `python -m tests.support.http_server FOLDER JSON`.

Serves `FOLDER/NAME.git` as module NAME, and writes the address it got to stdout.
"""

import json
import logging
import sys
from pathlib import Path

from huai_program.tables import convert
from huai_server.config.mirrors import Mirrors, MirrorSettings
from huai_server.config.tables import Listen, Module
from huai_server.http.fallback_clients import FallbackSlots
from huai_server.http.server import serve_http
from huai_server.http.settings import Grant, Served


class Folder:
    """A registry that looks afresh every time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def served(self) -> Served:
        """Every repository in the folder, as if a daemon had its locks next to them.

        A file `bug` there is an error that no code expects.
        """
        if (self._path / "bug").exists():
            raise RuntimeError(self._path)
        modules = {path.name.removesuffix(".git"): path for path in self._path.glob("*.git")}
        return Served(
            modules=modules,
            private={},
            certificates={},
            settings={
                name: Module(path="", digest="later" if name.startswith("later") else "now")
                for name in modules
            },
            fallback={name: FallbackSlots(self._path / f"{name}.slots", 5) for name in modules},
            mirrors=Mirrors(self._path / "mirrors", {}, MirrorSettings()),
        )

    def grant(self, token: str) -> Grant | None:  # noqa: ARG002 - the interface's
        """No token is valid."""
        return None


def main() -> None:
    """Serve until a signal."""
    folder, options = Path(sys.argv[1]), json.loads(sys.argv[2])
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    settings = convert("the options of a test", {"port": 0, **options}, Listen)
    serve_http(settings, Folder(folder), started)


def started(_scheme: str, host: str, port: int) -> None:
    """Tell the test."""
    sys.stdout.write(f"{host} {port}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
