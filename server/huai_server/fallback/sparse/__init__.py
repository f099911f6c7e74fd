"""Attr trees as sparse files, usually on a file system in memory; the engine makes the files."""
