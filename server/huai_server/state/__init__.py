"""Paths below the state root, and small files there."""
