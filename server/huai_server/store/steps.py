"""The packs from each commit to the next, which most downstreams ask for: files, to be handed out.

`steps/OLD-NEW.pack` in the repository, after the ids of the two commits.  It is thin: its deltas
are based on objects that whoever has OLD has.  Written before the branch moves to NEW, so it is
there for the first who asks.

Rule: a file that has its name is complete and durable, and is never written again.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from huai_native._native import Packs
from huai_program.durable import sync_folder
from huai_program.packs import TEMPORARY

_FOLDER = "steps"


class Wanted(NamedTuple):
    """A commit that is to be sent."""

    commit: bytes
    """Its content."""
    tree: bytes
    """The id of its tree."""


def step_path(repository: Path, old: str, new: str) -> Path:
    """The pack from one commit to the next; `old` and `new` are hex ids."""
    return repository / _FOLDER / f"{old}-{new}.pack"


def list_steps(repository: Path) -> list[Path]:
    """The packs that are there."""
    return sorted((repository / _FOLDER).glob("*.pack"))


def remove_unfinished_steps(repository: Path) -> None:
    """Remove what a killed run left; the caller holds the module's lock."""
    for path in (repository / _FOLDER).glob(f"{TEMPORARY}*"):
        path.unlink(missing_ok=True)


def newest_pack(pack_folder: Path) -> bytes:
    """The pack that was written last, without its suffix; empty: there is none."""
    packed = sorted(pack_folder.glob("*.idx"), key=_written)
    return os.fsencode(packed[-1].with_suffix("")) if packed else b""


def write_step(packs: Packs, path: Path, wanted: Wanted, since: tuple[bytes, bytes]) -> None:
    """Make the pack at `path`, of what is in `packs`; `since` as `Packs.send` has it.

    `FormatError` if an object is in no pack: then there is none, and git makes what is asked for.
    """
    folder = path.parent
    folder.mkdir(exist_ok=True)
    unfinished = folder / f"{TEMPORARY}{os.urandom(8).hex()}"
    try:
        with unfinished.open("xb") as file:
            packs.send(*wanted, file.write, since=since)
            file.flush()
            os.fchmod(file.fileno(), 0o444)
            os.fsync(file.fileno())
        unfinished.rename(path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise
    sync_folder(folder)


def drop_steps(repository: Path, *, keep: Path, before: str) -> None:
    """Remove all packs but `keep` and that which leads to the commit `before`.

    Who heard of that commit and not of the newest asks for it yet.
    """
    for path in list_steps(repository):
        if path != keep and not path.stem.endswith(f"-{before}"):
            path.unlink(missing_ok=True)


def _written(path: Path) -> int:
    return path.stat().st_mtime_ns
