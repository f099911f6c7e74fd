//! What a decoder accepts at most (FORMAT.md, "Limits"), checked before the memory is spent.

/// One git object, inflated.
pub const OBJECT_BYTES: u64 = 64 << 20;

/// Objects of one pack that comes in.
pub const PACK_OBJECTS: u32 = 1 << 20;

/// Deltas from an object to the whole one it is made from, in a pack that comes in.
///
/// Git writes 50 (pack.depth).  Whoever reads an object makes all that it is based on, each time.
pub const CHAIN_DEPTH: usize = 64;
