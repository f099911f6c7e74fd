"""What was done to a tree, and why: the history of its runs, its commits, and single paths.

Asks no upstream and holds no lock, so it answers while a sync runs; that sync alone writes
(`RunLog`).  Rule to keep: nothing here decides anything, it asks what the sync itself asks.
"""
