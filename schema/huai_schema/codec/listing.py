"""Directories as text: the form in which a scan, a layout and a snapshot exchange trees.

A whole tree is a sequence of listings in *tree order*: a directory comes before its
subdirectories, subdirectories in the byte order of their names, each with everything
below it before the next.
"""

from typing import NamedTuple

from huai_schema.paths import RelPath


class Listing(NamedTuple):
    """A directory with its own attributes, its files and symlinks, without subdirectories.

    A scan yields a large one in parts, one right after the other.
    """

    path: RelPath
    attributes: bytes
    """The directory's attribute fields, without name and newline; empty in parts but the first."""
    leaves: bytes
    """Encoded lines of files and symlinks, each ended by a newline, sorted by raw name."""
    digests: bytes = b""
    """32 bytes for each regular file of `leaves` in order (zeros: absent), or empty: all absent."""
