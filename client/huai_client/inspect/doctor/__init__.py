"""Checks of the conditions for a sync: each reports an error and its repair.

A new check is a function and a line in `checks`.  Rules to keep: a check leaves no change behind,
takes some seconds at most, and does not use the results of another one.
"""
