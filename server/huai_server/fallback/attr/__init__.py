"""Attr trees: what the fallback lists, brought up to a module's newest commit and proved right.

The use cases are `ensure.ensure`, `check.check_attr_tree`, `remove.delete_attr_tree` and
`foreign_changes.ForeignChanges`; each works on an `AttrTree` of any kind (`kind.AttrTreeKind`).
Where the files are says `huai_server.state.paths.FallbackPlaces`.  An attr tree is made from the
metadata repository alone; nothing here reads the mirrored tree.
"""
