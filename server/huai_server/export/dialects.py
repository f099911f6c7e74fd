"""The dialects: what each is called in server.toml and on the command line, and what it writes.

Rule: what a file holds follows from the described commit alone, and from what the administrator
wants: whoever adds a dialect may take nothing from a clock, a commit's id or the tree.  Lines of
which there is one for each entry are made in the engine.  Downstreams publish the files in the
order that `huai_client/plan/profiles/profiles.toml` gives their names.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from huai_schema.paths import RelPath
from huai_server.export import fedora, ls, stamps, sums, trace, tunasync
from huai_server.export.source import Source, Wanted

Texts: TypeAlias = Iterator[tuple[RelPath, Iterator[bytes]]]
"""Files below the folder of the export, each with its content in pieces, one after the other."""


class Dialect(NamedTuple):
    """Some files that belong together."""

    paths: Callable[[Wanted], tuple[RelPath, ...]]
    """What it may write, below the folder of the export."""
    texts: Callable[[Source, Wanted], Texts]


DIALECTS = {
    "trace": Dialect(trace.paths, trace.texts),
    "arch": Dialect(stamps.arch_paths, stamps.arch_texts),
    "timestamp": Dialect(stamps.probe_paths, stamps.probe_texts),
    "tunasync": Dialect(tunasync.paths, tunasync.texts),
    "b3sums": Dialect(sums.paths, sums.texts),
    "ls-lR": Dialect(ls.paths, ls.texts),
}
"""In the order in which they are written."""
FEDORA = "fedora"
"""The one that is written last: it names the files of all others (`fedora.Lists`)."""
NAMES = (*DIALECTS, FEDORA)


def all_paths(wanted: Wanted) -> tuple[RelPath, ...]:
    """Everything that is to be written, below the folder of the export."""
    found = [path for name in wanted.dialects for path in _paths(name)(wanted)]
    return tuple(found)


def _paths(name: str) -> Callable[[Wanted], tuple[RelPath, ...]]:
    return fedora.paths if name == FEDORA else DIALECTS[name].paths
