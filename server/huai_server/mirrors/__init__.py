"""Who holds what: what downstreams attested, and how far behind each one was."""
