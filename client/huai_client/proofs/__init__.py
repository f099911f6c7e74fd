"""Programs that prove the pointers of repositories before publishing (docs/CLIENT-HOOKS.md).

A sync without `proofs` imports nothing of this folder.
"""
