"""Commits of shards: a tree that is cut, and processes that scan it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from huai_server.commit.shard_record import shard_key
from huai_server.config.tables import ModuleEngine
from tests.support.committing import (
    NAME,
    SECONDS,
    Upstream,
    run_server,
    server_command,
    server_environment,
)

_P = ParamSpec("_P")
_T = TypeVar("_T")


class SerialExecutor(Executor):
    """Runs each task when it is submitted, so that a fault meets it too."""

    def submit(
        self, function: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs
    ) -> "Future[_T]":
        future: Future[_T] = Future()
        future.set_result(function(*args, **kwargs))
        return future


def configure(
    upstream: Upstream, *, mounts: bool = False, digest: str = "now", **engine: object
) -> None:
    """Configure the engine, also in server.toml; with `mounts`, other file systems are scanned."""
    values: dict[str, Any] = {"shard_entries": 200, **engine}
    upstream.configure(engine=ModuleEngine(**values), one_file_system=not mounts, digest=digest)
    upstream.root.mkdir(parents=True, exist_ok=True)
    lines = [f"[modules.{NAME}]", f'path = "{upstream.tree}"', f'digest = "{digest}"']
    lines += ["one_file_system = false"] * mounts + [f"[modules.{NAME}.engine]"]
    labels = values.pop("where", {})
    lines += [f"{name} = {json.dumps(value)}" for name, value in values.items()]
    lines += [f"where.{json.dumps(path)} = {json.dumps(labels[path])}" for path in labels]
    (upstream.root / "server.toml").write_text("\n".join(lines) + "\n")


def cut_upstream(folder: Path) -> Upstream:
    """An upstream with three shards, and files with names in several."""
    upstream = Upstream(folder)
    for number in range(150):
        upstream.write(f"pool/a/{number}", f"a{number}")
        upstream.write(f"pool/b/c/{number}", f"b{number}")
    for number in range(20):
        upstream.write(f"small/{number}", "x" * number)
    upstream.write("top", "top")
    os.link(upstream.tree / "pool/b/c/7", upstream.tree / "pool/a/linked")
    os.link(upstream.tree / "pool/b/c/7", upstream.tree / "pool/b/c/zz")
    os.link(upstream.tree / "pool/a/8", upstream.tree / "pool/a/within")
    os.link(upstream.tree / "top", upstream.tree / "small/top")
    configure(upstream)
    return upstream


def committed(upstream: Upstream, *arguments: str, code: int = 0) -> dict[str, Any]:
    done = run_server(upstream.root, "commit", NAME, "--json", *arguments)
    assert done.returncode == code, done.stderr
    events = map(json.loads, done.stdout.splitlines())
    return next((each for each in events if each.get("type") == "commit"), {})


def whole_id(
    upstream: Upstream, folder: Path, *, mounts: bool = False, digest: str = "now"
) -> tuple[str, dict[str, str]]:
    """Return the id of the tree by one scan, and the hardlinks with their leaders."""
    alone = Upstream(folder, upstream.tree)
    alone.configure(one_file_system=not mounts, digest=digest)
    alone.commit()
    return alone.entries_id, alone.links()


def mpi_command(ranks: int, root: Path, *arguments: str) -> list[str]:
    """The command line of `huai-server` as an MPI job."""
    program = [sys.executable, "-m", "huai_server.mpi", "--root", str(root), *arguments]
    return [str(Path(sys.executable).with_name("mpiexec")), "-n", str(ranks), *program]


def started(
    upstream: Upstream, path: bytes, engine: str = "local://2", ranks: int = 0
) -> tuple[subprocess.Popen[bytes], int]:
    """Start a commit, and return it with the process that scans a shard, which takes long.

    With `ranks` it is an MPI job.
    """
    arguments = upstream.root, "commit", NAME, "--engine", engine
    command = mpi_command(ranks, *arguments) if ranks else server_command(*arguments)
    running = subprocess.Popen(command, env=server_environment(), stderr=subprocess.PIPE)
    return running, scanning(upstream, path)


def scanning(upstream: Upstream, path: bytes, after: int = 0) -> int:
    """Wait for the process that scans a shard; with `after`, for the one after that."""
    lock = upstream.places.folder / "shards" / shard_key(path) / "lock"
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        process = lock.read_text().strip() if lock.exists() else ""
        if process and int(process) != after:
            return int(process)
        time.sleep(0.01)
    raise AssertionError("the shard did not begin")


def make_slow(upstream: Upstream, size: int = 2 << 30) -> Path:
    """Let the scan of a shard read many bytes; return the file."""
    large = upstream.tree / "pool/a/large"
    with large.open("wb") as file:
        file.truncate(size)
    return large


def ended(running: subprocess.Popen[bytes]) -> int:
    _, errors = running.communicate(timeout=SECONDS)
    assert b"Traceback" not in errors, errors.decode()
    return running.returncode
