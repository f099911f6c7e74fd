"""Updates of a mirror's tree, file by file, and the list that each of them leaves."""

import os
import random
from pathlib import Path

from tests.bench import trees

_RENAMED = 3
"""One file of so many is replaced by another name, as by a new version of a package."""
_BYTES = 200


class Mirror:
    """The regular files of a tree that no other process changes."""

    def __init__(self, root: Path) -> None:
        self._root = len(str(root)) + 1
        self._files = trees.regular_files(root)
        self._random = random.Random(1)

    def update(self, entries: int, number: int, now: int) -> bytes:
        """Change so many entries anywhere in the tree, at the time `now`; what rsync says of it.

        `number` tells one update from another.
        """
        files = max(1, entries * _RENAMED // (_RENAMED + 1))
        lines = []
        for count, place in enumerate(self._random.sample(range(len(self._files)), files)):
            path = self._files[place]
            if count % _RENAMED == 0:
                os.unlink(path)
                lines.append(b"*deleting   " + os.fsencode(path[self._root :]))
                path = self._files[place] = f"{path.partition('~')[0]}~{number}"
            self._write(path, now)
            lines.append(b">f.st...... " + os.fsencode(path[self._root :]))
        return b"\n".join((*lines, b""))

    def _write(self, path: str, now: int) -> None:
        with open(f"{path}.part", "wb") as file:
            file.write(self._random.randbytes(self._random.randrange(1, _BYTES)))
        time = now * 10**9 + self._random.randrange(10**9)
        os.utime(f"{path}.part", ns=(time, time))
        os.replace(f"{path}.part", path)
