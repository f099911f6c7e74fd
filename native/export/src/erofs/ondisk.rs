//! The records of an image, as bytes.
//!
//! Uses only what Linux 5.15 reads: extended inodes, flat and chunk-based data, a checksum of the
//! superblock, 4096-byte blocks.  All numbers are little endian.

use huai_git::bug::fit;

/// The block size in bytes; the only one that all kernels with 4 KiB pages support.
pub(crate) const BLOCK: usize = 4096;
/// The alignment of inodes; the number of an inode (nid) is its offset divided by it.
pub(crate) const SLOT: usize = 32;
/// The number of the root's inode, right after the superblock.
pub(crate) const ROOT_NID: u64 = 36;
/// The offset of the root's inode.
pub(crate) const ROOT: usize = 36 * SLOT;
pub(crate) const INODE_BYTES: usize = 64;
pub(crate) const DIRENT_BYTES: usize = 12;

const SUPERBLOCK: usize = 1024;
const MAGIC: u32 = 0xE0F5_E1E2;
/// The features: a checksum, and times of inodes.
const FEATURES: u32 = 3;
const CHUNKED_FILE: u32 = 4;
const BLOCK_BITS: u8 = 12;
/// The chunk size: 8 TiB, the largest one.
const CHUNK_BITS: u32 = 31;
const CHUNK_BYTES: u64 = (BLOCK as u64) << CHUNK_BITS;
const HOLE: [u8; 4] = [0xff; 4];
const NANOSECONDS: i64 = 1_000_000_000;
const POLYNOMIAL: u32 = 0x82F6_3B78;

/// The type of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Regular,
    Directory,
    Symlink,
}

impl Type {
    /// Return the code in directory entries.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Regular => 1,
            Self::Directory => 2,
            Self::Symlink => 7,
        }
    }

    /// Return the bits in a mode.
    fn bits(self) -> u16 {
        match self {
            Self::Regular => 0o100_000,
            Self::Directory => 0o040_000,
            Self::Symlink => 0o120_000,
        }
    }
}

/// The layout of an inode's data.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Data {
    /// In blocks of its own.
    Plain = 1,
    /// The last, partial block right after the inode, the others in blocks of its own.
    Inline = 5,
    /// A list of chunks after the inode.
    Chunks = 9,
}

/// The attributes of any inode.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attributes {
    pub(crate) kind: Type,
    pub(crate) mode: u16,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Nanoseconds since the epoch.
    pub(crate) mtime: i64,
    pub(crate) links: u32,
}

impl Attributes {
    /// Encode the inode; `first` is the first block of the data, or the size of its chunks.
    pub(crate) fn inode(&self, data: Data, size: u64, first: u32) -> Vec<u8> {
        let seconds = self.mtime.div_euclid(NANOSECONDS);
        let rest = fit::<_, u32>(self.mtime.rem_euclid(NANOSECONDS));
        let mut inode = Vec::with_capacity(INODE_BYTES);
        for number in [data as u16, 0, self.kind.bits() | self.mode, 0] {
            inode.extend(number.to_le_bytes());
        }
        inode.extend(size.to_le_bytes());
        for number in [first, 0, self.uid, self.gid] {
            inode.extend(number.to_le_bytes());
        }
        inode.extend(seconds.to_le_bytes());
        inode.extend(rest.to_le_bytes());
        inode.extend(self.links.to_le_bytes());
        inode.resize(INODE_BYTES, 0);
        inode
    }

    /// Encode a regular file that is one hole, with a list of chunks: 4 bytes for each 8 TiB begun.
    ///
    /// Every size up to 2^63 - 1 can be expressed.
    pub(crate) fn file(&self, size: u64) -> Vec<u8> {
        if size == 0 {
            return self.inode(Data::Plain, 0, 0);
        }
        let mut file = self.inode(Data::Chunks, size, CHUNK_BITS);
        for _ in 0..size.div_ceil(CHUNK_BYTES) {
            file.extend(HOLE);
        }
        file
    }
}

/// Return the block `first` with the superblock in it; its checksum covers the block from the superblock on.
pub(crate) fn superblock(first: &[u8], blocks: u32, inodes: u64, uuid: &[u8; 16]) -> Vec<u8> {
    let packed = |checksum: u32| {
        let mut block = Vec::new();
        for number in [MAGIC, checksum, FEATURES] {
            block.extend(number.to_le_bytes());
        }
        block.extend([BLOCK_BITS, 0, 36, 0]);
        block.extend(inodes.to_le_bytes());
        // The build time stays 0, so that equal trees give equal images.
        block.extend([0; 12]);
        block.extend(blocks.to_le_bytes());
        block.extend([0; 8]);
        block.extend(uuid);
        block.extend(b"huai");
        block.extend([0; 12]);
        block.extend(CHUNKED_FILE.to_le_bytes());
        block.extend([0; 44]);
        block
    };
    let (before, rest) = first.split_at_checked(SUPERBLOCK).unwrap_or_default();
    let behind = rest.get(packed(0).len()..).unwrap_or_default();
    let checksum = crc32c(&[&packed(0), behind].concat());
    [before, &packed(checksum), behind].concat()
}

/// Return the Castagnoli CRC from all ones, not inverted at the end, as the kernel compares it.
fn crc32c(data: &[u8]) -> u32 {
    let mut value = u32::MAX;
    for byte in data {
        value ^= u32::from(*byte);
        for _ in 0..8 {
            let carried = value & 1;
            value >>= 1;
            if carried == 1 {
                value ^= POLYNOMIAL;
            }
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_published_one() {
        // RFC 3720 inverts it at the end.
        assert_eq!(!crc32c(b"123456789"), 0xE306_9283);
        assert_eq!(!crc32c(&[0; 32]), 0x8A91_36AA);
    }

    #[test]
    fn records_are_as_long_as_they_have_to_be() {
        let attributes = Attributes {
            kind: Type::Regular,
            mode: 0o644,
            uid: 1,
            gid: 2,
            mtime: -1,
            links: 1,
        };
        assert_eq!(attributes.file(0).len(), INODE_BYTES);
        assert_eq!(attributes.file(CHUNK_BYTES).len(), INODE_BYTES + 4);
        assert_eq!(attributes.file(CHUNK_BYTES + 1).len(), INODE_BYTES + 8);
        let first = vec![7; BLOCK];
        let block = superblock(&first, 1, 1, &[1; 16]);
        assert_eq!(block.len(), BLOCK);
        let payload: Vec<_> = block.iter().filter(|byte| **byte == 7).collect();
        assert_eq!(payload.len(), BLOCK - 128);
    }
}
