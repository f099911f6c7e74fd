"""Git's own `git http-backend` behind a small HTTP server: an upstream that is not huai's."""

import os
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path

from tests.support.answering import QuietHandler, answering
from tests.support.http_fixtures import ENVIRONMENT, SECONDS


def git_backend(folder: Path) -> AbstractContextManager[str]:
    """Serve every repository in `folder` as `URL/NAME.git`."""
    return answering(_handler(folder))


def _handler(folder: Path) -> type[QuietHandler]:
    class Handler(QuietHandler):
        """A gateway as in RFC 3875."""

        def do_GET(self) -> None:
            self._run(b"")

        def do_POST(self) -> None:
            self._run(self.rfile.read(int(self.headers["Content-Length"])))

        def _run(self, body: bytes) -> None:
            path, _, query = self.path.partition("?")
            variables = {
                "GIT_PROJECT_ROOT": os.fspath(folder),
                "GIT_HTTP_EXPORT_ALL": "1",
                "REQUEST_METHOD": self.command,
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            }
            done = subprocess.run(
                ["git", "-c", "safe.directory=*", "http-backend"],
                input=body,
                capture_output=True,
                env={**ENVIRONMENT, **variables},
                timeout=SECONDS,
                check=False,
            )
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            fields = dict(line.split(": ", 1) for line in head.decode().splitlines())
            self.send_response(int(fields.pop("Status", "200").split()[0]))
            for name, value in fields.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return Handler
