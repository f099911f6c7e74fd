"""Turns listings into git objects (FORMAT.md, "Layout"); the engine computes the layout.

Streaming: objects are written as soon as they are complete.  The layout follows from names and
counts alone, so equal trees give equal ids.
"""

from collections.abc import Iterable

from huai_native import _native
from huai_schema.codec.listing import Listing
from huai_schema.git.objects import ObjectWriter


def build(listings: Iterable[Listing], writer: ObjectWriter | None) -> bytes:
    """Write the trees and manifests of a module; return the id of its root tree.

    Without a writer only computes that id.  The listings must come in tree order, the module's root
    first; else `FormatError`.
    """
    layout = _native.Layout(writer)
    for listing in listings:
        layout.add(*listing)
    return layout.finish()
