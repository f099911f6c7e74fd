"""A commit of shards, whose scans run in its process or ran before: killed, or refused a call."""

import os
from pathlib import Path

from huai_program.engine import tasks
from huai_schema.errors import HuaiError
from huai_server.commit.commit import commit_tree
from huai_server.commit.result import CommitOptions, CommitResult
from huai_server.commit.shard_scan import ShardTask, scan_shard
from tests.fault.killing import Ground, Hit
from tests.fault.scenarios import commit
from tests.fault.scenarios.commit import Committing, is_finished
from tests.support.committing import NAME, Upstream
from tests.support.sharded import SerialExecutor, configure


def by_engine(ground: Ground) -> Committing:
    """Two shards, with a file that has names in both, and changes in one."""
    ground.patch.setattr(tasks, "open_engine", lambda _: SerialExecutor)
    upstream = Upstream(ground.folder)
    configure(upstream, shard_entries=20)
    for number in range(30):
        upstream.write(f"d{number % 2}/f{number}", "x" * number)
    upstream.commit()
    upstream.write("d1/new", "new")
    os.link(upstream.tree / "d0/f0", upstream.tree / "d1/linked")
    return Committing(upstream, calls_at_the_end=40)


def by_commands(ground: Ground) -> Committing:
    scene = by_engine(ground)
    for path in (b"d0", b"d1"):
        scan_shard(ShardTask(str(scene.upstream.root), NAME, path, None, str(_jobs(scene))))
    return scene


def _jobs(scene: Committing) -> Path:
    return scene.upstream.root / "jobs"


def _commit(scene: Committing) -> CommitResult:
    jobs = _jobs(scene)
    shards = jobs if jobs.exists() else None
    options = CommitOptions(engine="" if shards else "serial", shards=shards)
    return commit_tree(NAME, scene.upstream.module, scene.upstream.places, options)


def run(scene: Committing) -> str:
    """Commit; what came of it, in a word."""
    try:
        result = _commit(scene)
    except HuaiError as error:
        return f"{int(error.exit_code)} {error.message}"
    if result.problems:
        return f"{int(result.exit_code)} {result.problems}"
    return "changed" if result.changed else "unchanged"


def is_old_or_new(scene: Committing, hit: Hit) -> str:
    """As for other commits; but what could not be looked up may wait for the next one.

    A shard that cannot identify its file system makes two files of one that has a name in another
    shard; and the system may answer otherwise for an owner if it cannot read all of its databases.
    """
    upstream = scene.upstream
    if hit.word == "changed" and upstream.entries_id != scene.tree:
        assert hit.call in ("open", "attributes")
        assert upstream.commit().changed
    return commit.is_old_or_new(scene, hit, "40")  # each worker reads server.toml


def is_continued(scene: Committing, hit: Hit) -> None:
    """The next one uses the results; those that commands left are for one commit."""
    results = hit.killed and [*scene.upstream.root.rglob("*.shard")]
    jobs = _jobs(scene)
    if not jobs.exists() or (scene.head == scene.before and [*jobs.glob("*.shard")]):
        result = _commit(scene)
        assert result.problems == ()
        assert not results or result.hashed_files <= 2
        assert not [*scene.upstream.root.rglob("*.shard")]
    is_finished(scene, hit)
