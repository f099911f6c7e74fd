"""The lists that quick-fedora-mirror and MirrorManager read, as `create-filelist` writes them.

`fullfiletimelist-NAME` is version 2 of the format: `[Version]`, `[Files]`, `[Checksums SHA1]`, and
`[End]`, by which a reader recognizes a complete list.  The differences from the reference:

- The time is the mtime: metadata hold no ctime.
- Directories have the size 0, symlinks to nowhere are listed.
- There are no SHA-1 checksums, which would need content.

The lists do not name each other: the client fetches them in addition to what they name, and deletes
other files.  So they name the other files of exports in the tree, last and with present attributes.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

from huai_native._native import FileList
from huai_schema.paths import RelPath
from huai_server.export.source import Existing, ExportRequest, Source

_FULL = RelPath(b"fullfilelist")
_IMAGES = tuple(
    b"." + suffix.encode()
    for suffix in (
        *("iso", "qcow", "qcow2", "raw", "raw.xz", "rhevm.ova", "sda.raw", "tar.gz", "tar.xz"),
        *("vagrant-libvirt.box", "vagrant-virtualbox.box", "vdi", "vmdk", "vmx", "vsphere.ova"),
    )
)
"""Image formats of Fedora's composes (productmd)."""


def paths(request: ExportRequest) -> tuple[RelPath, ...]:
    """Return the paths of imagelist, fullfilelist and fullfiletimelist."""
    name = request.list_name.encode()
    return (RelPath(b"imagelist-" + name), _FULL, RelPath(b"fullfiletimelist-" + name))


class Lists:
    """The lists of one export."""

    def __init__(
        self, source: Source, request: ExportRequest, other_exports: Sequence[Existing]
    ) -> None:
        """List the entries of `source`, and the other files of exports in the tree."""
        self._source = source
        self._paths = paths(request)
        self._other_exports = other_exports
        self.left_out = 0
        """The number of names that no line can hold; a directory counts once."""

    def texts(self) -> Iterator[tuple[RelPath, Iterator[bytes]]]:
        """Yield the lists, with the one that a client fetches first at the end."""
        images, full, times = self._paths
        yield images, self._rows(_IMAGES)
        yield full, self._full_list()
        yield times, self._time_list()

    def _rows(self, style: Literal["times"] | tuple[bytes, ...]) -> Iterator[bytes]:
        """Yield the rows of a list, and set `left_out` after the last one.

        `style` is `times`, or the suffixes of the paths to list, none for all paths.
        """
        rows = FileList(self._source.snapshot.arguments, self._source.left_out, style)
        yield from rows
        self.left_out = rows.left_out

    def _full_list(self) -> Iterator[bytes]:
        """Yield fullfilelist: all paths, those of exports last."""
        yield from self._rows(())
        other_paths = (each.path for each in self._other_exports)
        listed = (*self._source.exported.without_root(), *other_paths)
        yield b"".join(b"./" + path + b"\n" for path in listed)

    def _time_list(self) -> Iterator[bytes]:
        """Yield fullfiletimelist: times, types and sizes."""
        yield b"[Version]\n2\n\n[Files]\n"
        yield from self._rows("times")
        for path in self._source.exported.without_root():
            yield b"%d\td\t0\t%b\n" % (self._source.time, path)
        for file in self._other_exports:
            yield b"%d\tf\t%d\t%b\n" % (file.mtime, file.size, file.path)
        yield b"\n[Checksums SHA1]\n\n[End]\n"
