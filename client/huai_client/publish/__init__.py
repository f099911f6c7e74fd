"""Executing a plan: staged content is put in place, deletions come last."""
