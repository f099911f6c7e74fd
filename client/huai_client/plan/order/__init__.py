"""In which order a tree is published, and how long what is gone stays.

`profiles` (data: `profiles.toml`) says how kinds of repositories are laid out, `lookup` looks
into a snapshot, `order` judges paths, `grace` puts deletions off, `waiting` records them.
"""
