"""Comparing a tree with what was applied, piece by piece, without keeping anybody from syncing.

`VerifyRun` is the door; `standing` says what the tree should be, `jobs` are the pieces, `record`
remembers when each was looked at, `follow` keeps that in step with the commits.
"""
