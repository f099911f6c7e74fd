"""The search for local files with the content of files to fetch, which saves their transfer.

`docs/SAFETY.md` has the rules by which a local file counts.
"""
