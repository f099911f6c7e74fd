"""One commit: scan, digests, tree, pack, branch."""
