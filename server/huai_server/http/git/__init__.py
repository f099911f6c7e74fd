"""Git smart HTTP, read-only."""
