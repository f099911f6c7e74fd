"""Attr trees: what the fallback lists, brought up to a module's newest commit and proved right.

The use cases are `ensure`, `is_current`, `remove` (here), `scrub.Scrub` and `check.check`; places
are those of `huai_server.paths.FallbackPlaces`.  Everything is made from the metadata
repository; the mirrored tree is never looked at.
"""

from huai_server.fallback.attr.ensure import Result, ensure, is_current
from huai_server.fallback.attr.remove import remove
from huai_server.fallback.kind import AttrTreeError

__all__ = ["AttrTreeError", "Result", "ensure", "is_current", "remove"]
