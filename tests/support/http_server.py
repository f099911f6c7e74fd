"""The server process of the HTTP tests: `python -m tests.support.http_server FOLDER JSON`.

Serves `FOLDER/NAME.git` as module NAME, and writes the address it got to stdout.
"""

import json
import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from huai_server.actions.serve import settings_of
from huai_server.config.mirrors import Mirrors, MirrorSettings
from huai_server.config.tables import Listen
from huai_server.http.fallback_clients import FallbackSlots
from huai_server.http.server import serve_http
from huai_server.http.settings import Content, Grant, WebHook


class Folder:
    """A registry that looks afresh every time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def modules(self) -> Mapping[str, Path]:
        """Every repository in the folder."""
        return {path.name.removesuffix(".git"): path for path in self._path.glob("*.git")}

    def private(self) -> Mapping[str, Path]:
        """Everybody sees all of them."""
        return {}

    def certificates(self) -> Mapping[str, frozenset[str]]:
        """None opens anything."""
        return {}

    def grant(self, token: str) -> Grant | None:  # noqa: ARG002 - the interface's
        """No token is valid."""
        return None

    def contents(self) -> Mapping[str, Content]:
        """Return no content: no module serves any."""
        return {}

    def content_urls(self) -> Mapping[str, tuple[str, ...]]:
        """Return no URLs: no module is relayed."""
        return {}

    def undigested(self) -> Mapping[str, Path]:
        """Return the modules whose names begin with "later"."""
        return {name: path for name, path in self.modules().items() if name.startswith("later")}

    def fallback(self) -> Mapping[str, FallbackSlots]:
        """Return slots for all modules, as if a daemon had its locks next to the repositories."""
        return {name: FallbackSlots(self._path / f"{name}.slots", 5) for name in self.modules()}

    def webhooks(self) -> Sequence[tuple[str, WebHook]]:
        """Return no web hooks."""
        return ()

    def mirrors(self) -> Mirrors:
        """Return mirrors without attestations."""
        return Mirrors(self._path / "mirrors", {}, MirrorSettings())


def main() -> None:
    """Serve until a signal."""
    folder, options = Path(sys.argv[1]), json.loads(sys.argv[2])
    if "socket_path" in options:
        options["socket_path"] = Path(options["socket_path"])
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    settings = replace(settings_of(Listen()), **{"port": 0, **options})
    serve_http(settings, Folder(folder), started)


def started(_scheme: str, host: str, port: int) -> None:
    """Tell the test."""
    sys.stdout.write(f"{host} {port}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
