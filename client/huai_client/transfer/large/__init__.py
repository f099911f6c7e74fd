"""Large files by their block indices: only what is nowhere here is transferred.

- `older`: the version that stands in the tree, and what is known of it
- `shared_ranges`: what is still to come, for all mirrors that are asked at once
- `arriving`: one range, written and proved
- `range_source`: one web server
- `pieces`: blocks, from several of them
- `files`: composes
"""
