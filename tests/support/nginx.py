"""A real nginx on loopback, for as long as a test needs it.

A single process, so that it runs as the user of the test and ends with it.
"""

import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.ports import Process, on_free_port
from tests.support.processes import end_process

_GRACE = 10


class Nginx:
    """A running one."""

    def __init__(
        self, folder: Path, process: subprocess.Popen[bytes], port: int, scheme: str
    ) -> None:
        self._folder = folder
        self.process = process
        self.port = port
        self.url = f"{scheme}://127.0.0.1:{port}"
        """Without a slash."""

    @property
    def requests(self) -> list[str]:
        """The requests, in order of the responses: protocol, status, range, bytes sent, path.

        A request is logged after its answer was sent, and before another one is looked at.
        """
        with socket.socket(socket.AF_UNIX) as after:
            after.connect(str(self._folder / "after"))
            after.sendall(b"GET / HTTP/1.0\r\n\r\n")
            while after.recv(1000):
                pass
        return [line.rpartition(" ")[0] for line in self._lines()]

    @property
    def connections(self) -> list[str]:
        """The number of the connection of each."""
        return [line.rpartition(" ")[2] for line in self._lines()]

    def _lines(self) -> list[str]:
        return (self._folder / "access").read_text().splitlines()


@contextmanager
def nginx(
    root: Path,
    *,
    tls: tuple[Path, Path] | None = None,
    http2: bool = False,
    location: str = "",
    outside: str = "",
) -> Iterator[Nginx]:
    """Serve `root`; `tls`: the files of certificate and key.

    `location` and `outside` are more directives for the files, and for all of HTTP.
    """
    with tempfile.TemporaryDirectory(prefix="nginx-") as name:
        folder = Path(name)
        listen = (" ssl" if tls else "") + (" http2" if http2 else "")

        def start(port: int) -> Process:
            lines = _config(folder, root, f"127.0.0.1:{port}{listen}", tls, (location, outside))
            (folder / "nginx.conf").write_text(lines)
            return _start(folder)

        process, port = on_free_port(start, (folder / "error").read_text)
        try:
            yield Nginx(folder, process, port, "https" if tls else "http")
        finally:
            end_process(process, _GRACE)


def _config(
    folder: Path,
    root: Path,
    listen: str,
    tls: tuple[Path, Path] | None,
    more: tuple[str, str],
) -> str:
    places = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "\n".join(f"{each}_temp_path {folder}/{each};" for each in places)
    secured = f"ssl_certificate {tls[0]}; ssl_certificate_key {tls[1]};" if tls else ""
    location, outside = more
    user = "user root;" if os.geteuid() == 0 else ""
    return f"""
{user}
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error warn;
worker_rlimit_nofile 4096;
events {{ worker_connections 1024; }}
http {{
  {temporary}
  log_format short
    '$server_protocol $status "$http_range" $body_bytes_sent $request_uri $connection';
  access_log {folder}/access short;
  default_type application/octet-stream;
  {outside}
  server {{
    listen {listen}; {secured}
    location / {{ root {root}; {location} }}
  }}
  server {{
    listen unix:{folder}/after; access_log off;
    location / {{ return 204; }}
  }}
}}
"""


def _start(folder: Path) -> Process:
    program = "/usr/sbin/nginx"
    return subprocess.Popen(
        [program, "-c", str(folder / "nginx.conf"), "-p", str(folder), "-e", f"{folder}/error"],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
