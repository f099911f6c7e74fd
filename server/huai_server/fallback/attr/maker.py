"""The engine's maker of attr trees: entries by the hundred thousand, as `records.py` says."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from huai_native import _native


class Maker:
    """Carries out records (`records.Records`) below one directory, until it is closed."""

    def __init__(self, root: Path, building: Path | None = None) -> None:
        """With a `building` folder entries are renamed to their places; else made there."""
        self._root = root
        folder = None if building is None else os.fsencode(building)
        with self._whole_paths():
            self._native = _native.Maker(os.fsencode(root), folder, privileged=os.geteuid() == 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._native.leave()

    def apply(self, records: bytes) -> None:
        """Do all of it in order; an `OSError` names the path at which it ended."""
        with self._whole_paths():
            self._native.apply(records)

    def leave(self) -> None:
        """The last directory that was entered gets its times back."""
        with self._whole_paths():
            self._native.leave()

    @property
    def unowned(self) -> int:
        """How many entries could not be given their owner."""
        return self._native.unowned

    @contextmanager
    def _whole_paths(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            path = self._root / os.fsdecode(error.filename or b"")
            raise OSError(error.errno, error.strerror, str(path)) from None
