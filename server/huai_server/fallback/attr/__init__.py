"""Building, updating, checking and deleting attr trees, from which the fallback lists.

The use cases are `ensure.ensure`, `check.check_attr_tree`, `remove.delete_attr_tree` and
`foreign_changes.ForeignChanges`; each works on an `AttrTree` of any kind (`kind.AttrTreeKind`).
`huai_server.state.paths.FallbackPlaces` has the paths.  An attr tree is made from the metadata
repository alone; nothing here reads the mirrored tree.
"""
