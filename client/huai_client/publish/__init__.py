"""Carrying out a plan: staged content goes to its place, deletions come last."""
