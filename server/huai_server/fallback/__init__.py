"""Serving clients that know only rsync: attr trees, the preload library, the daemon."""
