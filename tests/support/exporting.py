"""Exports of a small upstream: `tests.support.committing.Upstream`, and a folder next to it."""

from pathlib import Path
from typing import NamedTuple

from huai_server.actions.export import export_module
from huai_server.config.tables import ModuleExport
from huai_server.export.export import WrittenFile
from tests.support.committing import NAME, Upstream

ALL = ("arch", "b3sums", "fedora", "ls-lR", "timestamp", "trace", "tunasync")
HOST = "mirror.example"


class Done(NamedTuple):
    """The result of an export."""

    serial: int
    """The serial of the commit that is described."""
    changed: bool
    files: tuple[WrittenFile, ...]
    left_out: int


class Exporter:
    """Commits and exports one tree."""

    def __init__(self, folder: Path, **table: object) -> None:
        """`table` is [modules.m.export]."""
        self.upstream = Upstream(folder)
        self.out = folder / "out"
        self.out.mkdir()
        self.configure(**table)

    def configure(self, **table: object) -> None:
        """Change [modules.m.export]."""
        export = ModuleExport(**{"files": ALL, "host": HOST, **table})  # type: ignore[arg-type]
        self.upstream.configure(export=export)

    def export(self, to: Path | None = None, *only: str) -> Done:
        """Export the newest commit."""
        module = self.upstream.module
        folder = None if to is None else str(to)
        described, result = export_module(
            NAME, lambda: module, self.upstream.places, folder=folder, only=only
        )
        return Done(described.info.serial, result.changed, result.files, result.left_out)

    def outside(self, *only: str) -> Done:
        """Export to the folder next to the tree."""
        return self.export(self.out, *only)

    def read(self, name: str) -> bytes:
        """Read a file of the folder next to the tree."""
        return (self.out / name).read_bytes()
