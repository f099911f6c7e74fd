"""hooks/shards: GNU parallel with the real program; the others with one that records its calls."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.committing import SECONDS, server_environment
from tests.support.sharded import cut_upstream, whole_id

HOOKS = Path(__file__).parents[2] / "hooks" / "shards"
PATHS = [b"a b", b"-c\n", b"d'\"$e\xff", *(b"%d" % number for number in range(130))]


def run(folder: Path, *command: str | Path, **variables: str) -> None:
    """Run a program with those of a folder on its PATH."""
    environment = {**server_environment(), **variables}
    environment["PATH"] = f"{folder}:{environment['PATH']}"
    done = subprocess.run(
        command, env=environment, capture_output=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr.decode()


def install(folder: Path, name: str, *lines: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("\n".join(lines) + "\n")
    (folder / name).chmod(0o755)


def test_parallel_commits_the_tree_of_one_scan(short_path: Path, tmp_path: Path) -> None:
    upstream = cut_upstream(short_path)
    # A first commit, whose shards are the lowest directories.
    (upstream.tree / "small").rename(upstream.tree / "sm'a $ll")
    start = "from huai_server.cli.main import main; main()"
    install(tmp_path / "bin", "huai-server", f"#!{sys.executable}", start)
    share = tmp_path / "the share"
    share.mkdir()
    variables = {"HUAI_ROOT": str(upstream.root), "HOME": str(tmp_path)}
    run(tmp_path / "bin", HOOKS / "parallel", "m", share, "--jobs", "2", **variables)
    assert (upstream.entries_id, upstream.links()) == whole_id(upstream, tmp_path / "1")
    shards = upstream.places.folder / "shards"
    assert len(list(shards.glob("*/digests"))) == 3
    assert not list(share.iterdir())


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Path]:
    """Records the calls of `huai-server`, which has to scan each shard once."""
    (tmp_path / "list").write_bytes(b"".join(path + b"\0" for path in PATHS))
    install(
        tmp_path / "bin",
        "huai-server",
        "#!/bin/sh",
        f'[ "$1" != shards ] || exec cat {tmp_path}/list',
        f'[ "$1" = shard ] || exec printf "%s\\n" "$*" >>{tmp_path}/commits',
        '[ "$1 $2 $3 $5 $6" = "shard --quiet --to -- m" ] || exit 1',
        f'printf "%s\\0" "$7" >>{tmp_path}/scanned',
    )
    yield tmp_path
    scanned = (tmp_path / "scanned").read_bytes().split(b"\0")[:-1]
    assert sorted(scanned) == sorted(PATHS)


def test_slurm_scans_each_shard_once_and_commits(recorded: Path) -> None:
    install(
        recorded / "bin",
        "sbatch",
        "#!/bin/bash",
        'if [ "$1" = --parsable ]; then',
        "  tasks=$(sed -n 's/^#SBATCH --array=1-//p' \"$2\") && echo '7;cluster'",
        "  for task in $(seq $tasks); do",
        '    SLURM_ARRAY_TASK_ID=$task SLURM_ARRAY_TASK_COUNT=$tasks "${@:2}" || exit',
        "  done",
        'elif [ "$2 $3" = "--dependency=afterany:7 --wrap" ]; then sh -c "$4"',
        "fi",
    )
    share = recorded / "the share"
    share.mkdir()
    run(recorded / "bin", HOOKS / "slurm", "m", share)
    committed = (recorded / "commits").read_text()
    assert re.fullmatch(f"commit m --from-shards {share}/m\\.\\w+\n", committed)
    assert not list(share.iterdir())


def test_kubernetes_scans_each_shard_once(recorded: Path) -> None:
    text = (HOOKS / "kubernetes.yaml").read_text()
    match = re.search(r"- >-\n(.*?)\n +volumeMounts", text, re.DOTALL)
    assert match
    script = " ".join(match[1].split()).replace("/share", str(recorded))
    pods = int(text.split("completions: ")[1].split()[0])
    loop = f"for JOB_COMPLETION_INDEX in $(seq 0 {pods - 1}); do {script} || exit; done"
    run(recorded / "bin", "sh", "-c", loop, NAME="m")


def test_dask_slurm_names_the_scheduler(tmp_path: Path) -> None:
    install(
        tmp_path / "bin",
        "dask_jobqueue.py",
        "class SLURMCluster:",
        "    scheduler_address = 'tcp://192.0.2.1:8786'",
        "    def __init__(self, **_): pass",
        "    def adapt(self, maximum_jobs): pass",
        "    def __enter__(self): return self",
        "    def __exit__(self, *_): pass",
    )
    install(tmp_path / "bin", "huai-server", "#!/bin/sh", f'echo "$*" >{tmp_path}/called')
    path = os.pathsep.join([str(tmp_path / "bin"), *sys.path])
    run(tmp_path / "bin", sys.executable, HOOKS / "dask-slurm", "m", PYTHONPATH=path)
    called = (tmp_path / "called").read_text()
    assert called == "commit m --engine dask://192.0.2.1:8786\n"
