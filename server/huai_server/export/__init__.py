"""The newest commit as the files that other programs of mirrors read.

Reads metadata only, never the tree.  `dialects` lists what is written, large ones have a module
each; `export` writes.
Rule: a file says nothing about the files that an export writes, so writing them makes no news.
"""
