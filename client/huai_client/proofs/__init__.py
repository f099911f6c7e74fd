"""Programs that prove the pointers of package repositories before these are published.

docs/PROOFS.md.  A sync without `proofs` imports nothing of this folder.
"""
