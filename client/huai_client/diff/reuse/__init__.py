"""Where the content of wanted files stands already, so that it need not be transferred.

The rules by which a local file is believed stand in `docs/REUSE.md`.
"""
