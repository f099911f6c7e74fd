"""Large files by their block indices: only what is nowhere here is transferred.

- `older`: the version that stands in the tree, and what is known of it
- `pieces`: blocks, from web servers
- `files`: composes
"""
