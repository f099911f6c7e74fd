"""Comparing a tree with what was applied, piece by piece, without keeping anybody from syncing.

`VerifyRun` is what to call.  `expected` says what the tree should be, `jobs` are the pieces,
`queue` orders them, `recheck` looks a second time, `parts` keeps their record in step with the
commits.
"""
