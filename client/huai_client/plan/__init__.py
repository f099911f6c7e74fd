"""Planning: the operations of a sync as a list, and their totals.

`build` runs the steps in order.  It alone reads the configuration, the clock and recorded state;
the other modules take values, and read the tree only through a `ReadableTree`.
"""
