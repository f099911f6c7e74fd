"""What was done to a tree, and why: its commits, single paths, the next sync, and `doctor`.

Only `doctor` takes a lock or asks an upstream; all else answers while a sync runs.  Rule to keep:
nothing here has rules of its own; it calls what a sync calls.
"""
