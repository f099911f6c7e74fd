"""Probes of mirrors: some files of the attested commit are fetched and compared."""
