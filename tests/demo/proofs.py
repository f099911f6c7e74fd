"""Proofs that the downstream equals the upstream, by other means than the sync itself.

And that the files can be had from `huai-server serve` as well.
"""

import json
import os
import random
import urllib.request
from pathlib import Path
from urllib.parse import quote_from_bytes

from tests.demo.processes import DemoError, Processes
from tests.demo.stage import MODULE, PROGRAMS

_COMPARE = (
    *("rsync", "-anc", "-H", "--numeric-ids", "--delete", "--itemize-changes"),
    "--exclude=.~tmp~/",
)
_SERVER = PROGRAMS / "huai-server"
_SAMPLE = 100
"""The number of files to fetch."""
_SECONDS = 60


def rsync_finds_no_difference(mirror: Path, copy: Path, processes: Processes) -> str:
    """Let rsync compare every byte and attribute of both trees; it must print nothing."""
    command = [*_COMPARE, f"{mirror}/", f"{copy}/"]
    difference = processes.run(*command).output
    if difference:
        raise DemoError(f"the trees differ:\n{difference}")
    left = [name for name in os.listdir(copy) if name.startswith(".~")]
    if left:
        raise DemoError(f"the sync has left {left} in the tree")
    return f"{' '.join(_COMPARE)} mirror/ huai-copy/ prints nothing"


def git_ids_are_equal(copy: Path, content_url: str, processes: Processes) -> str:
    """Commit the downstream's tree elsewhere: its git tree must be the upstream's.

    Not that of the whole commit: its descriptor tells one upstream from another.
    """
    first, root = processes.folder / "server", processes.folder / "second-server"
    processes.run(*(_SERVER, "--root", root, "add", MODULE, copy), *("--content-url", content_url))
    processes.run(_SERVER, "--root", root, "commit", MODULE)
    upstream = _entries(first, processes)
    downstream = _entries(root, processes)
    if upstream != downstream:
        raise DemoError(f"git tree ids: upstream {upstream}, downstream {downstream}")
    return f"both trees have the git tree id {upstream}"


def serve_hands_out_files(mirror: Path, url: str) -> str:
    """Fetch some files by HTTP; they must equal those of the mirror."""
    top = os.fsencode(mirror)
    paths = [os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names]
    files = sorted(path for path in paths if not os.path.islink(path))
    for path in random.sample(files, min(_SAMPLE, len(files))):
        address = f"{url}/content/{MODULE}/{quote_from_bytes(os.path.relpath(path, top))}"
        with urllib.request.urlopen(address, timeout=_SECONDS) as answer:  # noqa: S310 (our own)
            if answer.read() != Path(os.fsdecode(path)).read_bytes():
                raise DemoError(f"{address} is another file than {os.fsdecode(path)!r}")
    return f"{_SAMPLE} files from {url}/content/{MODULE}/ are those of mirror/"


def _entries(root: Path, processes: Processes) -> str:
    """Return the id of the newest commit's tree of entries."""
    status = processes.run(_SERVER, "--root", root, "status", "--json", MODULE).output
    commit = json.loads(status)["commit"]
    repository = root / "modules" / MODULE / "repository.git"
    arguments = ("--no-replace-objects", "--git-dir", repository, "rev-parse", "--verify")
    return processes.run("git", *arguments, f"{commit}:tree").output.strip()
