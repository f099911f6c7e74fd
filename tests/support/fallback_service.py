"""`huai-server fallback serve` as a process, with a look at the processes below it."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.committing import NAME, SECONDS, run_server, server_environment
from tests.support.prepared import SERVER, Started
from tests.support.processes import children
from tests.support.rsyncd import CHROOTS

MAY_CHROOT = "yes" in CHROOTS


@dataclass
class Service:
    """One that runs."""

    process: subprocess.Popen[str]
    port: int

    @property
    def url(self) -> str:
        return f"rsync://127.0.0.1:{self.port}/{NAME}/"

    def children(self) -> list[int]:
        """The processes that have it for a parent."""
        return children(self.process.pid)


def configure(
    root: Path, tree: Path, *, port: int = 0, modules: str = "", **values: object
) -> None:
    """Write server.toml for one module, and whatever TOML `modules` has."""
    settings = {
        "folder": str(root.parent / "fallback"),
        "address": "127.0.0.1",
        "port": port,
        "use_chroot": MAY_CHROOT,
        **values,
    }
    lines = ["[fallback]", *(f"{key} = {json.dumps(value)}" for key, value in settings.items())]
    root.mkdir(exist_ok=True)
    new = root / "server.toml.new"
    new.write_text("\n".join([*lines, f"[modules.{NAME}]", f'path = "{tree}"', modules]))
    new.replace(root / "server.toml")


def upstream(folder: Path, content: Mapping[str, bytes]) -> Path:
    """A state root with one commit of a tree of such files."""
    folder.chmod(0o755)
    (folder / "tree").mkdir()
    for name, data in content.items():
        (folder / "tree" / name).write_bytes(data)
    configure(folder / "state", folder / "tree")
    assert run_server(folder / "state", "commit", NAME).returncode == 0
    return folder / "state"


@contextmanager
def service(root: Path, **environment: str) -> Iterator[Service]:
    """Runs until the end of the block, however that ends it."""
    log = root.parent / "log"
    with log.open("a") as errors:
        process = Started(
            SERVER,
            ["--root", str(root), "fallback", "serve", "--json"],
            {**server_environment(), **environment},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    assert process.stdout is not None
    try:
        events = (json.loads(line) for line in process.stdout)
        port = next((each["port"] for each in events if each["type"] == "listening"), 0)
        assert port, log.read_text()
        yield Service(process, port)
    finally:
        process.terminate()
        process.wait(SECONDS)
        process.stdout.close()
        assert "Traceback" not in log.read_text()
