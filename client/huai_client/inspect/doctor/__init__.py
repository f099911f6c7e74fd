"""Whether a sync could go well: checks that each say what is wrong and how to repair it.

A new check is a function and a line in `checks`.  Rules to keep: no check changes anything that
stays, none takes longer than some seconds, and none trusts what another has found out.
"""
