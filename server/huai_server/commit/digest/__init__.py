"""Content digests: of new and changed files they are computed, of all others remembered."""
