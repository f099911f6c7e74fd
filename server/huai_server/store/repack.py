"""Merging packs into one, with git's own search for deltas.

Order of writes: the new pack, in a separate folder; it is durable, git has read it back and it
lacks no object of the old ones; then it gets its name, and the old ones lose theirs (`replaced`).
A run killed anywhere leaves every object in a pack or loose, some twice, and at most unfinished
files, which the next run removes.

Rule: callers of any method except `merge` hold the module's lock.  `merge` loses no object, so a
commit may add a pack meanwhile.  `merge_reachable` drops some, on which a commit could rely.
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
    """A pack without a name yet."""

    pack: PackFile
    stem: str
    """The name that it gets, from its checksum."""


class Repack:
    """The repacking of the repository at a path; one run at a time.

    The caller of a method that writes holds the module's lock, except for `merge`.
    """

    def __init__(self, repository: Path) -> None:
        self._repository = repository
        self._objects = repository / "objects"
        self._folder = self._objects / "pack"
        self._work = repository / _WORK

    @property
    def unreachable(self) -> Path:
        """Return the file that exists while the repository may have unreachable objects."""
        return self._work / "unreachable"

    def note_unreachable(self) -> None:
        """Create the file `unreachable`, durably.

        While it exists, each maintenance packs only objects that are reachable from a ref.
        """
        self._work.mkdir(exist_ok=True)
        self.unreachable.touch()
        sync_folder(self._work)
        sync_folder(self._repository)

    def loose(self) -> list[Path]:
        """Return the paths of the loose objects, which usually are commits."""
        return sorted(self._objects.glob(_LOOSE))

    def unfinished(self) -> list[Path]:
        """Return the files of a killed run, or of one that is making a pack."""
        return sorted(self._work.glob("new.*"))

    def merge(self, packs: Sequence[PackFile], remaining: Sequence[PackFile]) -> NewPack:
        """Make one pack of `packs`, without objects that `remaining` packs also have.

        `replace` gives it its name.  Raises `GitFailedError` if git leaves an object out.
        """
        names = [f"{pack.path.name}\n" for pack in packs]
        names += [f"^{pack.path.name}\n" for pack in remaining]
        new = self._make_pack(["--stdin-packs"], "".join(names).encode())
        self._reject_lossy({oid for pack in packs for oid in pack.ids()}, new, *remaining)
        return new

    def merge_reachable(self, excluded: Sequence[PackFile], ends: set[bytes]) -> NewPack:
        """Make one pack of all objects reachable from a ref, without those of `excluded` packs.

        `replace` gives it its name.  Raises `GitFailedError` if one of the commits `ends` (binary
        ids) is in none of these packs.
        """
        new = self._make_pack(["--all", "--honor-pack-keep"], b"")
        self._reject_lossy(ends, new, *excluded)
        return new

    def pack_loose(self, loose: Sequence[Path]) -> None:
        """Make a named pack of `loose` objects (paths), durably, and delete their files.

        Raises `GitFailedError`, and deletes nothing, if git leaves an object out.
        Git chooses deltas by the names of objects, and reads names only from commits in packs.
        """
        ids = "".join(f"{path.parent.name}{path.name}\n" for path in loose)
        new = self._make_pack([], ids.encode())
        self._reject_lossy({bytes.fromhex(oid) for oid in ids.split()}, new)
        self._install(new)
        self.remove_loose(loose)

    def replace(self, new: NewPack, packs: Iterable[PackFile], now: float) -> PackFile:
        """Rename the new pack into the repository, durably, and return it; `retire` the `packs`.

        Packs that are gone, or equal to the new one, are skipped.  `now` is in seconds since the
        epoch.
        """
        installed = self._install(new)
        old = [pack for pack in packs if pack.path != installed.path and pack.index_path.exists()]
        retire(self._folder, old, now)
        return installed

    def remove_loose(self, loose: Iterable[Path]) -> None:
        """Delete the files of loose objects that are in a pack now, and folders left empty."""
        for path in loose:
            path.unlink(missing_ok=True)
            with suppress(OSError):  # usually it has other objects
                path.parent.rmdir()

    def _reject_lossy(self, missing: set[bytes], new: NewPack, *remaining: PackFile) -> None:
        """Raise `GitFailedError` if an object of `missing` is in no pack; empties `missing`."""
        for pack in (new.pack, *remaining):
            missing.difference_update(pack.ids())
        if missing:
            raise GitFailedError(
                f"{self._repository}: git left out {len(missing)} objects: nothing was replaced",
                hint="try another version of git",
            )

    def _make_pack(self, arguments: Sequence[str], listed: bytes) -> NewPack:
        """Have git write a pack in the work folder, durably, and index it, which checks it.

        `arguments` are further options of `git pack-objects`, and `listed` is its input.  Deletes
        what a killed run left.
        """
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
        output: list[bytes] = []
        read = ["index-pack", "-o", str(index.absolute()), str(pack.absolute())]
        run_git(self._repository, read, put=output.append)
        with index.open("rb") as file:
            os.fchmod(file.fileno(), _COMPLETE)
            os.fsync(file.fileno())
        return NewPack(read_pack(pack), f"pack-{b''.join(output).decode().strip()}")

    def _install(self, new: NewPack) -> PackFile:
        """Move a new pack among the others, durably, and then its index; return the moved pack."""
        path = self._folder / f"{new.stem}{PACK}"
        new.pack.path.rename(path)
        sync_folder(self._folder)
        new.pack.index_path.rename(path.with_suffix(INDEX))
        sync_folder(self._folder)
        return read_pack(path)
