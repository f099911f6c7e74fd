"""In which order a tree is published.

`order` says in which stage a path is, `lookup` what stands around it in a snapshot, `patterns`
which publish rule matches it.
"""
