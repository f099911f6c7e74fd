"""Takes a commit of another repository of this machine as it is, with all that it needs.

Order of writes: a pack of what is new; of this the pack that needs no other, and its index; the
refs of what is over; the branch.  A run that is killed leaves objects that nothing names, and the
next one begins again.

Rule: the caller holds the module's lock.
"""

import os
from pathlib import Path
from typing import NamedTuple

from huai_program.durable import open_new, sync_folder
from huai_program.packs import INDEX, PACK, TEMPORARY
from huai_schema.errors import FormatError
from huai_server.store.git_program import run_git
from huai_server.store.repository import Head, Repository, StoreError

_COMPLETE = 0o444


class Source(NamedTuple):
    """A repository whose commits are taken: read in place, while others change it."""

    path: Path

    def open(self, repository: Repository) -> Repository:
        """A view of `repository` that reads what is here as well; nothing is written here."""
        both = Repository(repository.path)
        both.packs.add(os.fsencode(self.path / "objects" / "pack"))
        return both


def take(repository: Repository, source: Source, commit: str, former: Head | None) -> Head:
    """Bring the commit (hex id) of `source` here, and move the branch from `former` to it.

    `StoreError` if something of it is not there.
    """
    both = source.open(repository)
    sent, pack, index = (
        repository.pack_folder / f"{TEMPORARY}taken{each}" for each in ("-sent", "", "-index")
    )
    for path in (pack, index):
        path.unlink(missing_ok=True)
    try:
        head = both.head_of(commit)
        since = bytes.fromhex(former.tree) if former else None
        with open_new(sent) as file:
            both.packs.send(*both.content(head), file.write, since=since)
    except FormatError as error:
        raise StoreError(
            f"{source.path}: {error.message}", hint="the next sync of huai-client mends it"
        ) from error
    name = _index(repository, sent, pack, index)
    sent.unlink()
    _install(repository.pack_folder, (pack, index), name)
    repository.packs.forget()
    repository.move(head, former)
    return head


def _index(repository: Repository, sent: Path, pack: Path, index: Path) -> str:
    """Let git check every object and make pack and index; return the name for the pack."""
    said: list[bytes] = []
    arguments = ["index-pack", "--fix-thin", "--stdin", "-o", str(index), str(pack)]
    with sent.open("rb") as file:
        run_git(repository.path, arguments, stdin=file, put=said.append)
    return f"pack-{b''.join(said).decode().split()[-1]}"


def _install(folder: Path, unfinished: tuple[Path, Path], name: str) -> None:
    for path, suffix in zip(unfinished, (PACK, INDEX), strict=True):
        with path.open("rb") as file:
            os.fchmod(file.fileno(), _COMPLETE)
            os.fsync(file.fileno())
        path.rename((folder / name).with_suffix(suffix))
        sync_folder(folder)
