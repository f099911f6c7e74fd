"""Planning: what a sync is going to do, as a list, and what may be said of it.

`build` has the steps in their order and is the only module here that reads anything; all others
are pure.
"""
