"""The commit-graph files that `git gc` writes (gitformat-commit-graph(5)).

huai neither writes nor needs them.  One that names a dropped commit makes `git fsck` fail.
"""

import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from huai_schema.errors import FormatError

_HEADER = struct.Struct(">4sBBBB")
"""Magic, version, hash version, number of chunks, number of base graphs."""
_CHUNK = struct.Struct(">4sQ")
_ID = struct.Struct("20s")


def graph_files(repository: Path) -> list[Path]:
    """Return the graph files of a repository, those that name others first."""
    info = repository / "objects/info"
    chain = info / "commit-graphs"
    files = [chain / "commit-graph-chain", *sorted(chain.glob("*.graph")), info / "commit-graph"]
    return [file for file in files if file.exists()]


def remove_graphs(repository: Path) -> None:
    """Remove all graph files of a repository."""
    for file in graph_files(repository):
        file.unlink()
    with suppress(OSError):  # usually it does not exist
        (repository / "objects/info/commit-graphs").rmdir()


def named_commits(file: Path) -> Iterator[bytes]:
    """Yield the ids that a graph file names; `FormatError` if it is damaged."""
    data = file.read_bytes()
    try:
        magic, _, hashes, count, _ = _HEADER.unpack_from(data)
        if (magic, hashes) != (b"CGPH", 1):
            raise FormatError(f"{file}: not a commit-graph with SHA-1")
        end = _HEADER.size + (count + 1) * _CHUNK.size
        chunks = list(_CHUNK.iter_unpack(data[_HEADER.size : end]))
        begin, after = next(
            (offset, chunks[place + 1][1])
            for place, (kind, offset) in enumerate(chunks)
            if kind == b"OIDL"
        )
        for (oid,) in _ID.iter_unpack(data[begin:after]):
            yield oid
    except (struct.error, StopIteration, IndexError):
        raise FormatError(f"{file}: a damaged commit-graph") from None
