"""Comparing two snapshots (FORMAT.md, "Comparing")."""
