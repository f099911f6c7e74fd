"""`huai-client watch`: syncs that begin when an upstream has a new commit."""
