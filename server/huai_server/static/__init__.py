"""The static transport (FORMAT.md): files in which downstreams find and fetch what is new.

`catalog` decides on the files, `publish` makes them, a `Target` stores them.
"""
