"""Attr trees as sparse files, as a rule on a file system in memory; the engine makes the files."""
