"""Bytes of the metadata for a changed entry, as they pass on the wire in both directions.

Counted for huai-client's own fetch and for stock git, after scattered changes, and after
changes of whole neighbouring packages, as a distribution's update makes them.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from huai_client.filters.rules import EVERYTHING, Rules
from huai_client.metadata.http import MetadataUrl
from huai_client.metadata.repository import Repository
from tests.bench.figures import Figure, Goal
from tests.bench.stand import Stand
from tests.support.counting_proxy import counting

_GOALS = {"plain": Goal(100, "< 100 B"), "digests": Goal(150, "< 150 B")}
_TITLES = {"plain": "without digests", "digests": "with digests"}
_SECONDS = 300


def figures(stand: Stand) -> Iterator[Figure]:
    """For both modules and both kinds of change; then a first fetch, of all and of a part."""
    first = {module: _fetched_bytes(stand, module) for module in stand.modules}
    for clustered in (False, True):
        churn = stand.churn(clustered=clustered)
        for module in stand.modules:
            entries = stand.commit(module)
            ours, theirs = _fetched_bytes(stand, module)
            yield Figure(
                f"fetch per changed entry, {'clustered' if clustered else 'scattered'}, "
                f"{_TITLES[module]}",
                ours / entries,
                "bytes",
                "git fetch --depth 1",
                theirs / entries,
                _GOALS[module],
                f"{ours:,} bytes for {entries:,} entries that differ, directories whose time "
                f"changed included; {ours / churn.total:.0f} for each of the {churn.total:,} "
                "entries changed on purpose",
            )
    for module, (ours, theirs) in first.items():
        name = f"first fetch, an entry, {_TITLES[module]}"
        count = stand.entries
        yield Figure(name, ours / count, "bytes", "git clone --depth 1", theirs / count)
        part = fetch(stand, module, _one_directory(stand.tree / "flat"))
        goal = Goal(ours / 60 + (1 << 20), "a 60th + 1 MiB")
        name = f"first fetch, one directory of 5,000, {_TITLES[module]}"
        yield Figure(name, part, "bytes", "git clone --depth 1", theirs, goal)


def _one_directory(folder: Path) -> Rules:
    """The filter that mirrors nothing but the first directory in `folder`, which is at the top."""
    name = min(path.name for path in folder.iterdir())
    lines = f"+ /{folder.name}/", f"+ /{folder.name}/{name}/***", "- *"
    return Rules.parse(map(os.fsencode, lines))


def _fetched_bytes(stand: Stand, module: str) -> tuple[int, int]:
    return fetch(stand, module), _git(stand, module)


def fetch(stand: Stand, module: str, part: Rules = EVERYTHING) -> int:
    """Return the bytes on the wire of a fetch of the newest commit, or a `part` of it."""
    repository = Repository(stand.folder / f"fetched-{module}{'-part' if part else ''}")
    repository.sparse.limit_to(part)
    with counting(f"http://127.0.0.1:{stand.server_port}") as counted:
        commit = repository.fetch(MetadataUrl.of(counted.url, module))
    repository.keep([commit.id])
    return counted.sent_bytes + counted.received


def _git(stand: Stand, module: str) -> int:
    folder = stand.folder / f"git-{module}"
    if not folder.exists():
        _run_git("init", "--quiet", "--bare", folder)
    with counting(f"http://127.0.0.1:{stand.port}") as counted:
        url = MetadataUrl.of(counted.url, module).url
        branch = "+refs/heads/main:refs/heads/main"
        _run_git("-C", folder, "fetch", "--quiet", "--depth", "1", url, branch)
    return counted.sent_bytes + counted.received


def _run_git(*arguments: str | Path) -> None:
    environment = {**os.environ, "LC_ALL": "C", "GIT_CONFIG_GLOBAL": "/dev/null"}
    subprocess.run(["git", *map(str, arguments)], check=True, env=environment, timeout=_SECONDS)
