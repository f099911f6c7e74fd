"""Hands on what a downstream of this machine applied, so that others have it as their upstream."""
