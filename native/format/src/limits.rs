//! The limits of decoders (FORMAT.md, "Limits"), checked before memory is used.

/// Bytes of a component of a path, unescaped.
pub const NAME_BYTES: usize = 255;

/// Bytes of a path, unescaped.
pub const PATH_BYTES: usize = 4095;

/// Bytes of a symlink's target, unescaped.
pub const TARGET_BYTES: usize = 4095;

/// Bytes of an owner or group, unescaped.
pub const OWNER_BYTES: usize = 255;

/// Bytes of a line, LF included.
pub const LINE_BYTES: usize = 65_536;

/// Lines of a manifest or piece.
pub const MANIFEST_LINES: usize = 16_384;

/// Bytes of a manifest or piece.
pub const MANIFEST_BYTES: usize = 16 << 20;

/// Bytes of manifests and columns of a snapshot, for each entry.
pub const ENTRY_BYTES: u64 = 1024;

/// Bytes of manifests and columns that are allowed in addition.
pub const LISTING_BYTES: u64 = 64 << 20;

/// Bytes of a file.
pub const SIZE_MAX: u64 = (1 << 63) - 1;

/// Nanoseconds before or after the epoch.
pub const MTIME_MAX: i64 = i64::MAX;

/// Bytes of a digest.
pub const DIGEST_BYTES: usize = 32;

/// Blocks of a block index.
pub const BLOCK_INDEX_BLOCKS: u64 = 1 << 20;

/// Bytes of a file in a bundle.
pub const BUNDLED_BYTES: u32 = 64 << 10;

/// Entries of an inlined directory.
pub const INLINE_ENTRIES: usize = 128;

/// Lines of a manifest that a writer does not cut.
pub const SINGLE_LINES: usize = 256;

/// The average number of lines of a piece.
pub const PIECE_LINES: usize = 128;

/// Lines of a piece that a writer makes, whatever its names.
pub const PIECE_LINES_MAX: usize = 2048;
/// Bytes of a piece that a writer makes, whatever its names.
pub const PIECE_BYTES_MAX: usize = 1 << 20;

/// Pieces in a tree that is not split.
pub const FANOUT: usize = 64;

/// Digits of a key of a piece.
pub const KEY_DIGITS: usize = 16;

/// Bytes of a public key as a line of text, its comment included.
pub const KEY_BYTES: usize = 1024;

/// Bytes of a signature as `ssh-keygen` writes it.
pub const SIGNATURE_BYTES: usize = 4096;
