"""Mirrors over HTTP: attestations come in, and what mirrors hold is served in several forms."""
