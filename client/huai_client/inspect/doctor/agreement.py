"""The check that all metadata URLs have the same commit for each serial.

An upstream that shows different trees to two readers gives two commits one serial, which a
comparison of several addresses and the applied commit reveals.  Writes nothing below the state
root.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from huai_client.config.mirror import Mirror
from huai_client.inspect.doctor.finding import Finding, fail, ok, skipped
from huai_client.inspect.doctor.sample import newest_local
from huai_client.metadata.http import MetadataUrl, is_http
from huai_client.metadata.newest import find_newest
from huai_client.metadata.repository import Repository
from huai_client.run.deadline import Deadline
from huai_client.state import state as states
from huai_schema.errors import ExitCode, HuaiError

_SECONDS = 15
_FIX = (
    "keep both commits and ask the upstream's administrators: a server shows different trees to "
    "different downstreams, or its repository was restored from a backup"
)


def agreement(mirror: Mirror) -> Iterator[Finding]:
    """Check that no serial has two commits, at the metadata URLs and here."""
    newest = list(_commits(mirror))
    if len(newest) < 2:
        yield skipped("nothing to compare: one address of metadata, and nothing applied")
        return
    by_serial: dict[int, dict[str, str]] = {}
    for serial, commit, where in newest:
        by_serial.setdefault(serial, {}).setdefault(commit, where)
    for serial, commits in sorted(by_serial.items()):
        if len(commits) > 1:
            places = " and ".join(f"{commit[:12]} at {where}" for commit, where in commits.items())
            yield fail(f"serial {serial} has two commits: {places}", _FIX, ExitCode.ROLLED_BACK)
    if all(len(commits) == 1 for commits in by_serial.values()):
        serials = ", ".join(f"serial {serial}" for serial in sorted(by_serial))
        yield ok(f"{len(newest)} places agree: {serials}")


def _commits(mirror: Mirror) -> Iterator[tuple[int, str, str]]:
    """Yield serial, id and place of the applied commit, and of the newest at each URL."""
    applied = states.load(mirror.paths.state).applied
    deadline = Deadline.after(_SECONDS)
    with tempfile.TemporaryDirectory(prefix="huai-doctor-") as folder:
        repository = Repository(Path(folder, "asked.git"), timeout=_SECONDS)
        local = newest_local(mirror)
        if local is not None:
            repository.borrow(mirror.paths.repository, local.id)
        if applied is not None and repository.has(applied):
            yield repository.commit(applied).info.serial, applied, "this machine"
        for text in mirror.config.urls:
            url = MetadataUrl.of(text, mirror.upstream_name, mirror.tls)
            if not is_http(url.url):
                continue  # other transports have no time limit
            try:
                commit = repository.fetch(url, deadline, find_newest(url, timeout=_SECONDS))
            except HuaiError:
                continue  # the check of the metadata reports it
            yield commit.info.serial, commit.id, str(url)
