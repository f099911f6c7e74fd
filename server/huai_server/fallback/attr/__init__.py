"""Attr trees: what the fallback lists, brought up to a module's newest commit and proved right.

The use cases are `ensure`, `is_current` and `delete_attr_tree` (here),
`foreign_changes.ForeignChanges` and `check.check_attr_tree`; where the files are says
`huai_server.state.paths.FallbackPlaces`.  An attr tree is made from the metadata repository alone;
nothing here reads the mirrored tree.
"""

from huai_server.fallback.attr.ensure import AttrTreeResult, ensure, is_current
from huai_server.fallback.attr.remove import delete_attr_tree
from huai_server.fallback.kind import AttrTreeError

__all__ = ["AttrTreeError", "AttrTreeResult", "delete_attr_tree", "ensure", "is_current"]
