"""The static transport (FORMAT.md): files from which downstreams learn what is new, and fetch it.

`catalog` decides which there are, `publish` makes them, a `Target` is where they go.
"""
