"""Comparison of a tree with the applied commit, part by part, without delaying a sync.

Call `VerifyRun`.  `expected` has the expected tree, `jobs` are the pieces, `queue` orders them,
`recheck` compares a second time, and `parts` updates their record with each commit.
"""
