"""Finding local files with the content of wanted ones, so that it need not be transferred.

`docs/REUSE.md` has the rules by which a local file counts.
"""
