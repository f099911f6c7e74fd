"""Reports on a tree: its commits, single paths, the next sync, and `doctor`.

Only `doctor` takes a lock or contacts an upstream; everything else works while a sync runs.  Rule
to keep: this folder has no separate rules; it calls the code of a sync.
"""
