"""Writes a list of a tree that is not there, as long as any."""

from collections.abc import Iterator
from pathlib import Path

_FILES, _FOLDERS = 30, 100
"""Files of a directory, and such directories of a directory at the top."""
_NEWER = 200
"""One of so many files is newer in a later version."""
_T0 = 1_600_000_000


def write(to: Path, name: str, entries: int, version: int) -> None:
    """Write a list of a format to the file `to`; versions after 0 have newer files."""
    formats = {"lines": _lines, "mtree": _mtree, "fullfiletimelist": _published}
    with to.open("w", encoding="ascii") as file:
        file.writelines(formats[name](_files(entries, version)))


def _lines(files: Iterator[tuple[int, int, str]]) -> Iterator[str]:
    """Yield JSON, one entry a line, without directories."""
    for number, time, path in files:
        yield f'{{"path":"{path}","size":{number % 9999},"mtime":{time}}}\n'


def _mtree(files: Iterator[tuple[int, int, str]]) -> Iterator[str]:
    """Yield a specification of mtree by paths."""
    yield "#mtree\n. type=dir time=1.0 mode=755\n"
    for number, time, path in files:
        if number % _FILES == 0:
            if number % (_FILES * _FOLDERS) == 0:
                yield f"./{path.partition('/')[0]} type=dir time=1.0 mode=755\n"
            yield f"./{path.rpartition('/')[0]} type=dir time=1.0 mode=755\n"
        yield f"./{path} time={time}.0 mode=644 size={number % 9999} type=file\n"


def _published(files: Iterator[tuple[int, int, str]]) -> Iterator[str]:
    """Yield a list as `create-filelist` writes it."""
    yield "[Version]\n2\n\n[Files]\n"
    for number, time, path in files:
        yield f"{time}\tf\t{number % 9999}\t{path}\n"
    yield "\n[Checksums SHA1]\n\n[End]\n"


def _files(entries: int, version: int) -> Iterator[tuple[int, int, str]]:
    """Yield number, time and path of files, in tree order."""
    for number in range(entries):
        folder = number // _FILES
        top = f"releases-{folder // _FOLDERS:05}"
        time = _T0 + number + (version if number % _NEWER == 0 else 0)
        yield number, time, f"{top}/{folder % _FOLDERS:02}/p-{number:09}-1.fc40.rpm"
