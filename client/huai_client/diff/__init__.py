"""Comparison of the local tree with the one that a snapshot describes."""
