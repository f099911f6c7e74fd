"""Programs that prove the pointers of package repositories before publishing (docs/PROOFS.md).

A sync without `proofs` imports nothing of this folder.
"""
