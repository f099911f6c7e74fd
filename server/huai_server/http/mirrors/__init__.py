"""Mirrors over HTTP: attestations come in, and who holds what is told in several forms."""
