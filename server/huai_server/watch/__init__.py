"""Committing a module whenever its tree changes, for trees whose updates never end.

The engine watches the tree (`native/tree/src/watch/`), and this package decides when to commit.
"""
