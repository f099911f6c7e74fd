"""The kinds of repositories that are known, and in which stage their files are published."""
