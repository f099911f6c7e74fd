"""What both programs share around the format: configuration files, locks, how a run ends.

The only part of `huai_schema` that acts: it reads files, holds locks and writes to the
standard streams.  The format itself never imports it.
"""
