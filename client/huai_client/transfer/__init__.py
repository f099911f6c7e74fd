"""Transfers content from the upstream into the staging area, by parallel runs of rsync.

rsync gets regular files by name, never directories, symlinks or devices, and never deletes
anything.  Only the staging area decides whether an arrived file is accepted.
"""
