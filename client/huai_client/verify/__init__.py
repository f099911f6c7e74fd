"""Comparing a tree with the applied commit, part by part, without holding up a sync.

`VerifyRun` is what to call.  `expected` says what the tree should be, `jobs` are the pieces,
`queue` orders them, `recheck` looks a second time, `parts` keeps their record in step with the
commits.
"""
