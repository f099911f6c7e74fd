"""Whether mirrors that attest a commit serve its files: some are fetched, and compared."""
