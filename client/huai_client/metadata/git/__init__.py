"""Packs and objects of git, and the program `git`, as far as the client needs them.

`incoming` receives and installs a pack, `connectivity` checks that no object is missing, and
`program` fetches from upstreams that have no static files.
"""
