"""Scanning of a whole tree, directory by directory."""
