"""Listings to git objects and back (FORMAT.md, "Layout")."""
