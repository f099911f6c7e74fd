"""Serving clients that know only rsync: attr trees, the redirection to content, the daemon."""
