"""Paths that a sync must not touch: those of `protect`, and those that rsync's rules keep."""
