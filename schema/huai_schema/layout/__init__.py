"""Git objects as listings (FORMAT.md, "Layout")."""
