"""The newest commit in the formats that other mirror programs read.

Reads metadata only, never the tree.  `dialects` lists the formats, of which large ones have a
module each; `export` writes the files.
Rule: no file describes the files that exports write, so writing them makes no further change.
"""
