"""Content digests of new and changed files: what is remembered is not read again."""
