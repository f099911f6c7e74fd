"""Whether a sync could go well: each check says what is wrong and how to repair it.

A new check is a function and a line in `checks`.  Rules to keep: a check leaves no change behind,
takes some seconds at most, and does not use the results of another one.
"""
