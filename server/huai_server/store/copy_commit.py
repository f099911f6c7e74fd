"""Copies a commit from another repository of this machine, with all objects that it needs.

Order of writes: a pack of the new objects; a complete pack made of it, and its index; the refs of
finished histories; the branch.  A killed run leaves unnamed objects, and the next one begins again.

Rule: the caller holds the module's lock.
"""

import os
from pathlib import Path

from huai_program.durable import open_new, sync_folder
from huai_program.packs import INDEX, PACK, TEMPORARY
from huai_schema.errors import FormatError
from huai_server.store.git_program import run_git
from huai_server.store.repository import Head, Repository, StoreError

_COMPLETE = 0o444


def combined_with(repository: Repository, source: Path) -> Repository:
    """Return another reader of `repository`, which also finds the packed objects of `source`.

    `source` is the path of a repository; nothing is written there.
    """
    combined = Repository(repository.path)
    combined.packs.add(os.fsencode(source / "objects" / "pack"))
    return combined


def copy_commit(repository: Repository, source: Path, commit: str, former: Head | None) -> Head:
    """Copy a commit (hex id) of the repository at `source`; move the branch from `former` to it.

    `former` is the branch's commit, or None before the first; the caller holds the module's lock.
    Raises `StoreError` if an object is missing or damaged, `GitFailedError` if git finds a fault.
    """
    combined = combined_with(repository, source)
    thin_pack, pack, index = (
        repository.pack_folder / f"{TEMPORARY}taken{suffix}" for suffix in ("-sent", "", "-index")
    )
    for path in (pack, index):
        path.unlink(missing_ok=True)
    try:
        head = combined.head_of(commit)
        since = bytes.fromhex(former.tree) if former else None
        with open_new(thin_pack) as file:
            combined.packs.send(*combined.content(head), file.write, since=since)
    except FormatError as error:
        raise StoreError(
            f"{source}: {error.message}", hint="the next sync of huai-client repairs it"
        ) from error
    name = _index(repository, thin_pack, pack, index)
    thin_pack.unlink()
    _install(repository.pack_folder, (pack, index), name)
    repository.packs.forget()
    repository.move_branch(head, former)
    return head


def _index(repository: Repository, thin_pack: Path, pack: Path, index: Path) -> str:
    """Let git check `thin_pack`, and write the complete `pack` and its `index`.

    Returns the pack's final name, without suffix.  Raises as `run_git` does.
    """
    output: list[bytes] = []
    arguments = ["index-pack", "--fix-thin", "--stdin", "-o", str(index), str(pack)]
    with thin_pack.open("rb") as file:
        run_git(repository.path, arguments, stdin=file, put=output.append)
    return f"pack-{b''.join(output).decode().split()[-1]}"


def _install(folder: Path, unfinished: tuple[Path, Path], name: str) -> None:
    """Move a pack and its index (`unfinished`) durably into `folder`, under the name `name`."""
    for path, suffix in zip(unfinished, (PACK, INDEX), strict=True):
        with path.open("rb") as file:
            os.fchmod(file.fileno(), _COMPLETE)
            os.fsync(file.fileno())
        path.rename((folder / name).with_suffix(suffix))
        sync_folder(folder)
