"""Making one pack of several, by git's own search for deltas.

Order of writes: the new pack, in a folder of its own; it is durable, git has read it back and it
lacks nothing that the old ones hold; then it gets its name, and the old ones lose theirs
(`replaced`).  A run killed anywhere leaves every object in a pack or in a file of its own, some
twice, and at most unfinished files, which the next run removes.

Rule: whoever calls another method than `merge` holds the module's lock.  `merge` loses nothing that
is there, so a commit may add a pack meanwhile.  `reachable` does, and a commit would rely on it.
"""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from huai_program.durable import sync_folder
from huai_program.packs import INDEX, PACK
from huai_server.store.git_program import GitFailedError, run_git
from huai_server.store.pack_files import PackFile, read_pack
from huai_server.store.replaced import retire

_WORK = "maintain"
_COMPLETE = 0o444
_LOOSE = "[0-9a-f]" * 2 + "/" + "[0-9a-f]" * 38


class NewPack(NamedTuple):
    """A pack that has no name yet."""

    made: PackFile
    stem: str
    """The name that it gets, after its checksum."""


class Repack:
    """Of one repository; one at a time."""

    def __init__(self, repository: Path) -> None:
        """Nothing happens yet."""
        self._repository = repository
        self._objects = repository / "objects"
        self._folder = self._objects / "pack"
        self._work = repository / _WORK

    @property
    def unreachable(self) -> Path:
        """There as long as objects may be here that no ref leads to any more."""
        return self._work / "unreachable"

    def note_unreachable(self) -> None:
        """Let the next run know, if this one is killed."""
        self._work.mkdir(exist_ok=True)
        self.unreachable.touch()
        sync_folder(self._work)
        sync_folder(self._repository)

    def loose(self) -> list[Path]:
        """The objects that are files of their own: commits, as a rule."""
        return sorted(self._objects.glob(_LOOSE))

    def unfinished(self) -> list[Path]:
        """What a killed run left."""
        return sorted(self._work.glob("new.*"))

    def merge(self, packs: Sequence[PackFile], others: Sequence[PackFile]) -> NewPack:
        """One pack of `packs`, without what `others` hold as well."""
        names = [f"{pack.path.name}\n" for pack in packs]
        names += [f"^{pack.path.name}\n" for pack in others]
        new = self._write(["--stdin-packs"], "".join(names).encode())
        self._check({oid for pack in packs for oid in pack.ids()}, new, *others)
        return new

    def reachable(self, kept: Sequence[PackFile], ends: set[bytes]) -> NewPack:
        """One pack of all that a ref leads to, without what the packs `kept` by somebody hold.

        `ends`: ids of commits that have to be there.
        """
        new = self._write(["--all", "--honor-pack-keep"], b"")
        self._check(ends, new, *kept)
        return new

    def pack_loose(self, loose: Sequence[Path]) -> None:
        """Put `loose` objects into a pack.

        Git looks for the names of what it packs, which decide what is compared with what, from
        commits in packs only.
        """
        ids = "".join(f"{path.parent.name}{path.name}\n" for path in loose)
        new = self._write([], ids.encode())
        self._check({bytes.fromhex(oid) for oid in ids.split()}, new)
        self._install(new)
        self.remove_loose(loose)

    def take_place(self, new: NewPack, packs: Iterable[PackFile], now: float) -> PackFile:
        """Let a new pack take the place of `packs`; `now` in seconds since the epoch."""
        installed = self._install(new)
        old = [pack for pack in packs if pack.path != installed.path and pack.index_path.exists()]
        retire(self._folder, old, now)
        return installed

    def remove_loose(self, loose: Iterable[Path]) -> None:
        """Remove objects that are in a pack now."""
        for path in loose:
            path.unlink(missing_ok=True)
            with suppress(OSError):  # most likely there are others in it
                path.parent.rmdir()

    def _check(self, wanted: set[bytes], new: NewPack, *others: PackFile) -> None:
        """Refuse a pack that lacks objects which are in none of the `others` either."""
        for pack in (new.made, *others):
            wanted.difference_update(pack.ids())
        if wanted:
            raise GitFailedError(
                f"{self._repository}: git left out {len(wanted)} objects, nothing was replaced",
                hint="try another version of git",
            )

    def _write(self, arguments: Sequence[str], listed: bytes) -> NewPack:
        self._work.mkdir(exist_ok=True)
        for path in self.unfinished():
            path.unlink()
        pack, index = self._work / f"new{PACK}", self._work / f"new{INDEX}"
        git = ["pack-objects", "--stdout", "--delta-base-offset", "-q"]
        with pack.open("xb") as file:
            run_git(self._repository, [*git, *arguments], stdin=listed, put=file.write)
            file.flush()
            os.fchmod(file.fileno(), _COMPLETE)
            os.fsync(file.fileno())
        said: list[bytes] = []
        read = ["index-pack", "-o", str(index.absolute()), str(pack.absolute())]
        run_git(self._repository, read, put=said.append)
        with index.open("rb") as file:
            os.fchmod(file.fileno(), _COMPLETE)
            os.fsync(file.fileno())
        return NewPack(read_pack(pack), f"pack-{b''.join(said).decode().strip()}")

    def _install(self, new: NewPack) -> PackFile:
        path = self._folder / f"{new.stem}{PACK}"
        new.made.path.rename(path)
        sync_folder(self._folder)
        new.made.index_path.rename(path.with_suffix(INDEX))
        sync_folder(self._folder)
        return read_pack(path)
