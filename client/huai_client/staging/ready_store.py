"""Ready files: verified content under keys, and a check that the verification is still valid.

After a crash of the machine, data that was never flushed may be missing from files whose rename
survived, and any program that adds files to a tree may add some here.  So the files of another run
are moved to `unverified` and verified once more, on demand.  Without a digest that proves little:
such a file is valid only if this client left it in this boot.
"""

import os
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

from huai_client.staging.content import Arrival, verify
from huai_client.tree import handles
from huai_client.tree.handles import closing
from huai_native import _native
from huai_schema.entries import File
from huai_schema.paths import RelPath

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_BOOT_BYTES = 128


def key_of(file: File) -> str:
    """Return the name of verified content: equal only for equal path, size, time and digest."""
    text = b"%b\0%d\0%d\0%b" % (file.path, file.size, file.mtime, file.digest or b"")
    return blake2b(text, digest_size=20).hexdigest()


def boot_id(secret: bytes = b"") -> bytes:
    """Return a name of this boot, which only the owner of `secret` knows.

    Empty, and so never trusted, if the kernel does not provide one.
    """
    try:
        boot = BOOT_ID.read_bytes().strip()
    except OSError:
        return b""
    return blake2b(boot, key=secret, digest_size=20).hexdigest().encode()


class ReadyStore:
    """The folders of verified content (`ready`), and of that to verify again (`unverified`)."""

    def __init__(self, root: int, boot: bytes) -> None:
        """Open both folders in `root`, the area's handle; move another run's files to `unverified`.

        `boot` names this boot; it is recorded in the area.
        """
        self.same_boot = bool(boot) and _read(root, b"boot") == boot
        self.handle = handles.own_directory(root, b"ready")
        self._unverified = handles.own_directory(root, b"unverified")
        self._keys: set[bytes] = set()
        self._unverified_keys = handles.own_files(self._unverified)
        for name in handles.own_files(self.handle):
            _native.remove_all(self._unverified, name)
            os.rename(name, name, src_dir_fd=self.handle, dst_dir_fd=self._unverified)
            self._unverified_keys.add(name)
        if not self.same_boot:
            _write(root, b"boot", boot)

    def __bool__(self) -> bool:
        """True if there may be any file."""
        return bool(self._keys or self._unverified_keys)

    def has(self, file: File) -> bool:
        """Return True if the content of `file` is ready; unverified content is verified first."""
        if not self:
            return False
        key = os.fsencode(key_of(file))
        if key in self._keys:
            return True
        if key not in self._unverified_keys or (file.digest is None and not self.same_boot):
            return False
        left = file._replace(path=RelPath(key))
        if verify(self._unverified, [left], cut=True).arrivals != [Arrival.ARRIVED]:
            return False
        self._unverified_keys.discard(key)
        os.rename(key, key, src_dir_fd=self._unverified, dst_dir_fd=self.handle)
        self._keys.add(key)
        return True

    def enter(self, file: File, handle: int, name: bytes) -> None:
        """Move the file `name` in `handle`, just verified, here, as the content of `file`."""
        key = os.fsencode(key_of(file))
        os.rename(name, key, src_dir_fd=handle, dst_dir_fd=self.handle)
        self._keys.add(key)

    def add(self, files: Iterable[File]) -> None:
        """Record that `files` were linked here, under their keys."""
        self._keys.update(os.fsencode(key_of(file)) for file in files)

    @property
    def has_unverified(self) -> bool:
        """True if any file has to be verified again."""
        return bool(self._unverified_keys)

    def take_unverified(self, file: File) -> tuple[int, bytes] | None:
        """Forget the unverified content of `file`; return its place, for the caller to move it.

        None without such content.
        """
        key = os.fsencode(key_of(file))
        if key not in self._unverified_keys:
            return None
        self._unverified_keys.discard(key)
        return self._unverified, key

    def prune(self, files: Iterable[File]) -> None:
        """Drop all content that belongs to none of `files`, or whose file has other names.

        A change of its attributes would change a file of the tree.
        """
        if not self:
            return
        keep = {os.fsencode(key_of(file)) for file in files}
        for handle, keys in ((self.handle, self._keys), (self._unverified, self._unverified_keys)):
            for name in list(keys):
                shared = os.stat(name, dir_fd=handle, follow_symlinks=False).st_nlink > 1
                if shared or name not in keep:
                    _native.remove_all(handle, name)
                    keys.discard(name)

    def close(self) -> None:
        """Close the handles."""
        os.close(self.handle)
        os.close(self._unverified)


def _read(handle: int, name: bytes) -> bytes:
    """Return the beginning of a file, or nothing if it is unreadable."""
    try:
        with handles.opened_file(handle, name) as source:
            return os.read(source, _BOOT_BYTES)
    except OSError:
        return b""


def _write(handle: int, name: bytes, content: bytes) -> None:
    """Replace a file by a new one."""
    _native.remove_all(handle, name)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with closing(os.open(name, flags, 0o600, dir_fd=handle)) as target:
        os.write(target, content)
