"""The limits of a decoder (FORMAT.md, "Limits").

They are checked before the memory that they guard is allocated.  Raising one is a compatible change
for readers only; writers must stay within the published values.  The limits of lines, manifests and
git trees are in the engine alone (`native/git/src/limits.rs`).
"""

NAME_BYTES = 255
"""The length of a path component, unescaped (NAME_MAX of the file systems in use)."""

PATH_BYTES = 4095
"""The length of a path relative to the module (PATH_MAX less its NUL, as in rsync)."""

OBJECT_BYTES = 64 << 20
"""The size of a git object, inflated."""

OWNER_BYTES = 255
"""The length of an owner's or group's name, unescaped."""

DIGEST_BYTES = 32
"""The length of a BLAKE3-256."""

TOTAL_ENTRIES = 1 << 32
"""The number of entries of one snapshot."""

BLOCK_INDEX_MIN = 128 << 10
"""The size of the smallest file with a block index, which has two blocks."""

CLOCK_SKEW = 3600
"""Seconds by which the clocks of two machines may differ without a warning."""

BUNDLED_BYTES = 64 << 10
"""The size of a file in a bundle."""

BUNDLE_PATHS, BUNDLE_REQUEST_BYTES = 50_000, 4 << 20
"""The number of paths of a request for a bundle, and their length with a NUL each."""
