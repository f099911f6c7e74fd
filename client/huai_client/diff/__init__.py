"""Comparing the tree that is there with the one that is wanted."""
