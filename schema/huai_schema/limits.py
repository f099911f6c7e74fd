"""Bounds on what a decoder accepts (FORMAT.md, "Limits").

They are checked before the memory they guard is spent.  Raising one is a
compatible change for readers only; writers must stay within the published values.
Those of lines, manifests and git trees stand in the engine alone (`native/format/src/limits.rs`).
"""

NAME_BYTES = 255
"""One path component, unescaped (NAME_MAX of the file systems in use)."""

PATH_BYTES = 4095
"""A whole path relative to the module (PATH_MAX less its NUL; rsync's own bound)."""

OBJECT_BYTES = 64 << 20
"""One git object, inflated."""

OWNER_BYTES = 255
"""An owner's or group's name, unescaped."""

DIGEST_BYTES = 32
"""BLAKE3-256."""

TOTAL_ENTRIES = 1 << 32
"""Entries of one snapshot."""

BLOCK_INDEX_MIN = 128 << 10
"""Bytes of the smallest file with a block index: it has two blocks."""

CLOCK_SKEW = 3600
"""Seconds by which the clocks of two machines may differ before anybody is told."""
