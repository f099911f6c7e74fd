"""The order in which a tree is published.

`order` finds the stage of a path, `patterns` the publish rule that matches it.
"""
