"""Mirrors over HTTP: attestations come in."""
