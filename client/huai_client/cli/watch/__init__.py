"""`huai-client watch`: starts a sync when an upstream has a new commit."""
