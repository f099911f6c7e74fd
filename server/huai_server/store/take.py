"""Takes a commit of another repository of this machine as it is, with all that it needs.

Order of writes: the step from the commit before, which is also what is taken; the pack with the new
objects, and its index; the refs of what is over; the branch.  A run that is killed leaves objects
that nothing names, and the next one begins again.

Rule: the caller holds the module's lock.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from huai_native._native import Packs
from huai_program.durable import sync_folder
from huai_program.packs import INDEX, PACK, TEMPORARY
from huai_schema.errors import FormatError
from huai_server.store.git_program import run_git
from huai_server.store.repository import Head, Repository, StoreError
from huai_server.store.steps import Wanted, drop_steps, step_path, write_step

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
    try:
        head = both.head_of(commit)
        wanted = both.content(head)
        pack, index = (
            repository.pack_folder / f"{TEMPORARY}taken{each}" for each in ("", "-index")
        )
        for path in (pack, index):
            path.unlink(missing_ok=True)
        if former is None:
            with pack.open("xb") as file:
                both.packs.send(*wanted, file.write)
            said = _index(repository, ["-o", str(index), str(pack)])
        else:
            said = _add_step(repository, both.packs, (former, head, wanted), (pack, index))
    except FormatError as error:
        raise StoreError(
            f"{source.path}: {error.message}", hint="the next sync of huai-client mends it"
        ) from error
    _install(repository.pack_folder, (pack, index), said)
    repository.packs.forget()
    repository.move(head, former)
    if former is not None:
        step = step_path(repository.path, former.commit, head.commit)
        drop_steps(repository.path, keep=step, before=former.commit)
    return head


def _add_step(
    repository: Repository,
    packs: Packs,
    commits: tuple[Head, Head, Wanted],
    unfinished: tuple[Path, Path],
) -> str:
    """Write the step, and a pack of it that needs no other; the name of that."""
    former, head, wanted = commits
    pack, index = unfinished
    step = step_path(repository.path, former.commit, head.commit)
    write_step(packs, step, wanted, (bytes.fromhex(former.tree), b""))
    return _index(repository, ["--fix-thin", "--stdin", "-o", str(index), str(pack)], step)


def _index(repository: Repository, arguments: Sequence[str], step: Path | None = None) -> str:
    """Let git check every object, and make the index; the name for the pack."""
    said: list[bytes] = []
    if step is None:
        run_git(repository.path, ["index-pack", *arguments], put=said.append)
    else:
        with step.open("rb") as file:
            run_git(repository.path, ["index-pack", *arguments], stdin=file, put=said.append)
    return f"pack-{b''.join(said).decode().split()[-1]}"


def _install(folder: Path, unfinished: tuple[Path, Path], name: str) -> None:
    for path, suffix in zip(unfinished, (PACK, INDEX), strict=True):
        with path.open("rb") as file:
            os.fchmod(file.fileno(), _COMPLETE)
            os.fsync(file.fileno())
        path.rename((folder / name).with_suffix(suffix))
        sync_folder(folder)
