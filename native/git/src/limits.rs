//! The limits of packs and objects (FORMAT.md, "Limits"), checked before memory is used.

/// Bytes of an inflated git object.
pub const OBJECT_BYTES: u64 = 64 << 20;

/// Objects of a received pack.
pub const PACK_OBJECTS: u32 = 1 << 20;

/// Deltas from a stored object to the whole object it is based on: as in go-git.
///
/// Packs over HTTP are within `CHAIN_DEPTH`; git's own transports bring longer chains.
pub const READ_DEPTH: usize = 4095;

/// Bytes of the deltas of one object.
pub const READ_DELTAS: u64 = 128 << 20;

/// Work of reading one object: a minute or less.
pub const READ_WORK: u64 = 16 << 30;

/// Deltas from an object to the whole object it is based on, in a received pack.
///
/// Git writes 50 (pack.depth).  Each read of an object computes all its bases.
pub const CHAIN_DEPTH: usize = 64;

/// Bytes of a name in a git tree.
pub const ITEM_BYTES: usize = 256;
