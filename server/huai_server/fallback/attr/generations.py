"""The generations of an attr tree, and the links to the served one.

A daemon holds a shared lock on the root of the generation that it serves from; an old generation is
deleted when no daemon holds its lock.  Rule to keep: at each step a daemon finds a complete
generation with its seal, or one that is being updated, or it refuses the module.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from huai_program.locking import try_lock
from huai_server.state.paths import FallbackPlaces


def make_folder(folder: Path) -> None:
    """Make `folder` and those above, if missing, for any daemon to traverse whatever the umask."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)


def make_own_folder(places: FallbackPlaces) -> None:
    """Make the folder of the generations, which only this user and root can enter.

    Directories of an attr tree have the owners and modes of the mirror, so that an uploader could
    otherwise write into it.  A daemon enters it before it gives up root.
    """
    make_folder(places.folder)
    places.generations.mkdir(mode=0o700, exist_ok=True)
    if places.generations.stat().st_mode & 0o077:
        places.generations.chmod(0o700)


def served_generation(places: FallbackPlaces) -> str | None:
    """Return the name of the served generation; None if no generation is served."""
    served = target(places.tree)
    return None if served is None else Path(served).name


def is_sealed(places: FallbackPlaces) -> bool:
    """Return True if the root of the served generation has the mtime that `seal` recorded."""
    try:
        return target(places.seal) == str(places.tree.stat().st_mtime_ns)
    except OSError:
        return False


def seal(places: FallbackPlaces, mtime: int) -> None:
    """Record the mtime, in nanoseconds, that the root has or is about to get."""
    replace_link(places.seal, str(mtime))


def serve_generation(places: FallbackPlaces, name: str, real: str) -> None:
    """Serve the generation `name`, with content from `real`; remove the mark of an update."""
    replace_link(places.real, real)
    replace_link(places.tree, f"{places.generations.name}/{name}")
    seal(places, (places.generations / name).stat().st_mtime_ns)
    places.updating.unlink(missing_ok=True)


def stop(places: FallbackPlaces) -> None:
    """Stop serving, by removing the link; connected clients finish."""
    places.tree.unlink(missing_ok=True)


def unseal(places: FallbackPlaces) -> None:
    """Remove the seal, so that new clients are refused: the served generation is damaged."""
    places.seal.unlink(missing_ok=True)


@contextmanager
def mark_updating(places: FallbackPlaces) -> Iterator[None]:
    """Mark and lock the served generation while it is changed in place.

    If the change is interrupted, the lock is released and the mark stays: daemons refuse the
    module until an update or a build succeeds.
    """
    new = places.updating.with_suffix(".new")
    new.unlink(missing_ok=True)
    mark = os.open(new, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        os.fchmod(mark, 0o644)  # regardless of the umask: daemons of any user test the lock
        fcntl.flock(mark, fcntl.LOCK_EX)
        new.replace(places.updating)
        yield
        places.updating.unlink()
    finally:
        os.close(mark)


def next_name(places: FallbackPlaces) -> str:
    """Return a name for a new generation: the next number."""
    names = (each.name for each in places.generations.iterdir())
    return str(1 + max((int(name) for name in names if name.isdecimal()), default=0))


def discard_unserved(places: FallbackPlaces, discard: Callable[[Path], None]) -> None:
    """Call `discard` for each generation that is not served and that no client reads."""
    current = served_generation(places)
    if not places.generations.is_dir():
        return
    for generation in sorted(places.generations.iterdir()):
        # This also deletes the folders of an interrupted deletion.
        if generation.name != current and generation.exists() and _has_no_clients(generation):
            discard(generation)


def replace_link(link: Path, to: str) -> None:
    """Make the symlink `link` point to `to`, in one step."""
    new = link.with_name(f"{link.name}.new")
    new.unlink(missing_ok=True)
    new.symlink_to(to)
    new.replace(link)


def _has_no_clients(generation: Path) -> bool:
    """Return True if no rsync has the generation locked."""
    root = os.open(generation, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return try_lock(root)
    finally:
        # A daemon that locks it after this finds another generation served.
        os.close(root)


def target(link: Path) -> str | None:
    """Return the target of a symlink; None if it is missing, or is not a symlink."""
    try:
        return os.readlink(link)
    except OSError:
        return None
