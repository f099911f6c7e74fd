"""The order in which a tree is published.

`order` finds the stage of a path, `lookup` the names around it in a snapshot, `patterns` the
publish rule that matches it.
"""
