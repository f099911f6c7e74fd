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

/// One component of a path, unescaped.
pub const NAME_BYTES: usize = 255;

/// A whole path, unescaped.
pub const PATH_BYTES: usize = 4095;

/// A symlink's target, unescaped.
pub const TARGET_BYTES: usize = 4095;

/// An owner or group, unescaped.
pub const OWNER_BYTES: usize = 255;

/// A line, LF included.
pub const LINE_BYTES: usize = 65_536;

/// Lines of one manifest or piece.
pub const MANIFEST_LINES: usize = 16_384;

/// A manifest or piece.
pub const MANIFEST_BYTES: usize = 16 << 20;

/// Manifests and columns of a snapshot, for each entry.
pub const ENTRY_BYTES: u64 = 1024;

/// The same, beside that.
pub const LISTING_BYTES: u64 = 64 << 20;

/// A file's size.
pub const SIZE_MAX: u64 = (1 << 63) - 1;

/// Nanoseconds before or after 1970.
pub const MTIME_MAX: i64 = i64::MAX;

/// A digest.
pub const DIGEST_BYTES: usize = 32;

/// Blocks of the index of a large file.
pub const BLOCK_INDEX_BLOCKS: u64 = 1 << 20;

/// A name in a git tree.
pub const ITEM_BYTES: usize = 256;

/// Entries of an inlined directory.
pub const INLINE_ENTRIES: usize = 128;

/// Lines of a manifest that is not cut, as writers make it.
pub const SINGLE_LINES: usize = 256;

/// How many lines a piece has on average.
pub const PIECE_LINES: usize = 128;

/// Lines and bytes of a piece as writers make it, whatever its names say.
pub const PIECE_LINES_MAX: usize = 2048;
/// See `PIECE_LINES_MAX`.
pub const PIECE_BYTES_MAX: usize = 1 << 20;

/// Pieces in a tree that is not split.
pub const FANOUT: usize = 64;

/// Digits of a key.
pub const KEY_DIGITS: usize = 16;

/// A public key as a line of text, its comment included.
pub const KEY_BYTES: usize = 1024;

/// A signature as `ssh-keygen` writes it.
pub const SIGNATURE_BYTES: usize = 4096;
