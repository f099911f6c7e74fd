"""The administrator's programs that run before and after a sync (docs/CLIENT-HOOKS.md).

A sync without hooks imports nothing of this folder.
"""
