"""Commits a module whenever its tree has changed, for trees whose updates never end.

The engine watches the tree (`native/tree/src/watch/`); here is decided when to commit.
"""
