"""A commit from a list in a tree of which only what changes is on a disk: for trees of any size.

The repository is made as a first commit makes it, from listings that no scan brought; the commits
that are measured are whole processes, which read of the tree what the list names, as in any other.
What a scan and find would cost is not known: they would need the files.
"""

import os
import random
import secrets
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from huai_client.filters import Rules
from huai_native._native import PackWriter, write_tree
from huai_program.packs import TEMPORARY
from huai_schema.codec.commits import CommitInfo, Counts, Totals
from huai_schema.codec.descriptor import Descriptor, write_root
from huai_schema.codec.listing import Listing
from huai_schema.paths import RelPath
from huai_server.commit.list_record import LIST_RECORD, ListRecord, settings_of
from huai_server.config.load import load
from huai_server.state.paths import module_places
from huai_server.store.repository import Repository
from tests.bench.fetch_bench import fetch
from tests.bench.figures import Figure, Goal
from tests.bench.stand import Stand
from tests.bench.upstream.changes import CHANGED, GOAL, Listed

_MODULE = "synthetic"
_FILES = 9
"""The files of a directory."""
_DIRECTORIES = 1000
"""The directories in each one at the top."""
_TOPS = 10
"""The directories of the part."""
_SIZE_BITS = 23
_EPOCH = 1_700_000_000


def figures(stand: Stand) -> Iterator[Figure]:
    """Fetch a part; then changed files side by side, and all over the tree."""
    directories = max(1, stand.entries // (_FILES + 1))
    tree = stand.folder / _MODULE
    tree.mkdir()
    stand.server.run("add", _MODULE, tree)
    stand.make(commit_listings, tree, stand.server.root, directories)
    packs = Repository(module_places(stand.server.root, _MODULE).repository).pack_folder
    size = sum(path.stat().st_size for path in packs.glob("*.pack"))
    part = Rules.parse((b"+ /00[0-9]/***", b"- *"))
    tops = (directories - 1) // _DIRECTORIES + 1
    share = min(1.0, _TOPS / tops)
    yield Figure(
        f"first fetch of {_TOPS} of {tops} directories at the top, of {stand.entries:,} entries",
        fetch(stand, _MODULE, part),
        "bytes",
        "all packs",
        size,
        Goal(size * share + (1 << 20), f"{share:.0%} + 1 MiB"),
    )
    listed = Listed(stand, _MODULE, tree)
    for where, side_by_side in (("side by side", True), ("all over the tree", False)):
        title = f"commit of {CHANGED:,} changed files {where}, of {stand.entries:,} never made"
        change = partial(write_some, directories, side_by_side=side_by_side)
        yield from listed.rows(title, change, GOAL)


def write_some(
    directories: int, root: Path, seed: int, list_file: Path, *, side_by_side: bool
) -> None:
    """Write some of the files, and say which, as rsync does."""
    rng = random.Random(seed)
    if side_by_side:
        begin = rng.randrange(max(1, directories - CHANGED // _FILES))
        places = [(begin + each // _FILES, each % _FILES) for each in range(CHANGED)]
    else:
        some = rng.sample(range(directories), min(CHANGED, directories))
        places = [(directory, rng.randrange(_FILES)) for directory in some]
    lines = []
    for directory, name in places:
        path = root / os.fsdecode(_path(directory)) / _name(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(rng.randbytes(rng.randrange(1, 400)))
        lines.append(f">f.st...... {path.relative_to(root)}\n")
    list_file.write_text("".join(lines))


def commit_listings(tree: Path, root: Path, directories: int) -> None:
    """Make the first commit of the module, as if `tree` held so many directories."""
    module, places = load(root).module(_MODULE), module_places(root, _MODULE)
    repository = Repository.create(places.repository)
    name = os.fsencode(TEMPORARY + secrets.token_hex(8))
    writer = PackWriter(os.fsencode(repository.pack_folder), name, threads=os.cpu_count() or 1)
    descriptor = Descriptor(_MODULE, module.content_urls, module.rules, secrets.token_hex(16))
    top = write_root(descriptor, write_tree(_listings(directories), writer), writer)
    writer.finish()
    tops = (directories - 1) // _DIRECTORIES + 1
    files = directories * _FILES
    totals = Totals(files, 1 + tops + directories, 0, files << _SIZE_BITS)  # at most
    info = CommitInfo(_MODULE, 1, totals, Counts(added=totals.entries))
    head = repository.commit(top, info, None, module.retention)
    (tree / "000").mkdir()
    record = ListRecord(head.commit, int(time.time()), 0, settings_of(module))
    LIST_RECORD.save(places.lists, record)


def _listings(directories: int) -> Iterator[Listing]:
    rng = random.Random(1)
    yield _listing(b"", rng, 0)
    for number in range(directories):
        if number % _DIRECTORIES == 0:
            yield _listing(_path(number).partition(b"/")[0], rng, 0)
        yield _listing(_path(number), rng, _FILES)


def _listing(path: bytes, rng: random.Random, files: int) -> Listing:
    leaves = b""
    for number in range(files):
        fields = _name(number).encode(), rng.getrandbits(_SIZE_BITS), _EPOCH + rng.getrandbits(27)
        leaves += b"%s\t%d\t%d\n" % fields
    return Listing(RelPath(path), b"%d" % _EPOCH, leaves, rng.randbytes(32 * files))


def _path(directory: int) -> bytes:
    return b"%03d/%06d" % (directory // _DIRECTORIES, directory)


def _name(number: int) -> str:
    return f"pkg_{number}-1_amd64.deb"
