"""Upstreams that do not run huai: their lists become commits in the module's own repository.

A list says what is new, and rsync's own file list says what it is, so that a commit knows all that
rsync does: types, sizes, times, modes, owners, targets and hardlinks, and no digest.  Where a
program prints the list (`command`), it knows what that states.
"""
