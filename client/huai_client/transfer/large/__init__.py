"""Large files by their block indices: only blocks that are not here are transferred.

- `older`: the version in the tree, and its known blocks
- `shared_ranges`: the missing ranges, shared by concurrent mirrors
- `range_source`: one web server; a range from it, written and proved
- `pieces`: blocks, from several servers
- `files`: composes
"""
