//! What a decoder accepts at most (FORMAT.md, "Limits"), checked before the memory is spent.

/// One git object, inflated.
pub const OBJECT_BYTES: u64 = 64 << 20;

/// Objects of one pack that comes in.
pub const PACK_OBJECTS: u32 = 1 << 20;

/// Deltas from an object that is here to the whole one it is made from: as go-git.
///
/// What comes in over HTTP is within `CHAIN_DEPTH`; git's own transports bring longer ones.
pub const READ_DEPTH: usize = 4095;

/// Bytes of the deltas of one object that is read.
pub const READ_DELTAS: u64 = 128 << 20;

/// Work of reading one object: a minute or less.
pub const READ_WORK: u64 = 16 << 30;

/// Deltas from an object to the whole one it is made from, in a pack that comes in.
///
/// Git writes 50 (pack.depth).  Whoever reads an object makes all that it is based on, each time.
pub const CHAIN_DEPTH: usize = 64;
