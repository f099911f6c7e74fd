"""Planning: the operations of a sync as a list, and the numbers that describe it.

`build` runs the steps in their order.  It alone reads the configuration, the clock and recorded
state; the other modules take values, and look at the tree only through a `TreeReader`.
"""
