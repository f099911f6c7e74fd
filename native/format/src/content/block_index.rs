//! The block index of a large file, which proves each block (FORMAT.md, "Block indices").
//!
//! The chaining values of BLAKE3's own tree at the size of a block give the file's digest, so an
//! index is proved by the digest, and a block by the index.  A chaining value depends on the offset
//! of its block; the CRC-32 next to it does not, so it finds the same block at other offsets.

use std::collections::HashMap;
use std::ops::Range;

use blake3::Hasher;
use blake3::hazmat::{
    ChainingValue, HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root,
};
use huai_git::crc::Crc32;
use huai_git::error::{Error, Result};

use crate::entries::Digest;
use crate::limits::{BLOCK_INDEX_BLOCKS, DIGEST_BYTES};

/// The smallest block in bytes; smaller ones cost more than they save.
const SMALLEST: u64 = 64 << 10;
/// The largest block in bytes of a file that stays within `BLOCK_INDEX_BLOCKS` with it.
const USUAL: u64 = 1 << 20;
/// The most blocks of a file with smaller blocks: an index of half a MiB.
const FEW: u64 = 16 << 10;
const CHECKSUM_BYTES: usize = 4;
/// The bytes of an index for each block.
pub const BYTES_OF_BLOCK: usize = DIGEST_BYTES + CHECKSUM_BYTES;

/// Return the block size of a file of `size` bytes: 64 KiB, doubled until the index is short
/// enough.
pub fn block_size(size: u64) -> u64 {
    let mut block = SMALLEST;
    while count_blocks(size, block)
        > if block < USUAL {
            FEW
        } else {
            BLOCK_INDEX_BLOCKS
        }
    {
        block = block.saturating_mul(2);
    }
    block
}

/// Return true if a file of `size` bytes can have an index; a single block would be the whole file.
pub fn may_have_index(size: u64) -> bool {
    size > SMALLEST
}

/// Return the length in bytes of the index of a file of `size` bytes.
pub fn length(size: u64) -> u64 {
    count_blocks(size, block_size(size)).saturating_mul(BYTES_OF_BLOCK as u64)
}

fn count_blocks(size: u64, block: u64) -> u64 {
    size.div_ceil(block.max(1))
}

/// The checksums of one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// The BLAKE3 chaining value of these bytes at this offset.
    pub value: ChainingValue,
    /// CRC-32, which does not depend on the offset.
    pub checksum: u32,
}

/// The source of a block of a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockSource {
    /// The same block of the older version.
    Same,
    /// Possibly block `.0` of the older version; a checksum does not prove it.
    Elsewhere(usize),
    /// Possibly zeros.
    Zeros,
    /// A transfer.
    Unknown,
}

/// A hasher of one block.
#[derive(Debug)]
pub struct BlockHasher {
    hasher: Hasher,
    checksum: Crc32,
}

impl BlockHasher {
    /// Make a hasher of the block at `offset`, a multiple of the block size.
    pub fn new(offset: u64) -> Self {
        let mut hasher = Hasher::new();
        hasher.set_input_offset(offset);
        Self {
            hasher,
            checksum: Crc32::default(),
        }
    }

    /// Add the next bytes.
    pub fn update(&mut self, content: &[u8]) {
        self.hasher.update(content);
        self.checksum.update(content);
    }

    /// Return the block of all bytes that were added.
    pub fn finish(&self) -> Block {
        Block {
            value: self.hasher.finalize_non_root(),
            checksum: self.checksum.value(),
        }
    }
}

/// Return the block of `size` zeros at `offset`.
pub fn zeros_at(offset: u64, size: u64) -> Block {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    let mut hasher = BlockHasher::new(offset);
    let mut left = usize::try_from(size).unwrap_or(usize::MAX);
    while left > 0 {
        let some = left.min(ZEROS.len());
        hasher.update(ZEROS.get(..some).unwrap_or_default());
        left = left.saturating_sub(some);
    }
    hasher.finish()
}

/// The checksums of all blocks of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockIndex {
    size: u64,
    block: u64,
    blocks: Vec<Block>,
}

impl BlockIndex {
    /// Make the index of a file of `size` bytes; each block but the last has `block` bytes.  An
    /// error for another number of blocks, and for a file too small for an index.
    pub fn new(size: u64, block: u64, blocks: Vec<Block>) -> Result<Self> {
        if !may_have_index(size) || blocks.len() as u64 != count_blocks(size, block) {
            return Err(Error::new("the number of blocks does not match the file"));
        }
        Ok(Self {
            size,
            block,
            blocks,
        })
    }

    /// Decode `bytes`; an error unless they are the index of the file with this size and digest.
    pub fn decode(bytes: &[u8], size: u64, digest: &Digest) -> Result<Self> {
        let index = Self::read(bytes, size)?;
        if index.digest() != *digest {
            return Err(Error::new("a block index of another file"));
        }
        Ok(index)
    }

    /// Decode `bytes` as the index of some file of `size` bytes, without proof; an error for
    /// another length.
    pub fn read(bytes: &[u8], size: u64) -> Result<Self> {
        let block = block_size(size);
        let blocks = usize::try_from(count_blocks(size, block)).unwrap_or(usize::MAX);
        if blocks.checked_mul(BYTES_OF_BLOCK) != Some(bytes.len()) {
            return Err(Error::new("a block index of the wrong length"));
        }
        let (values, checksums) = bytes.split_at(blocks.saturating_mul(DIGEST_BYTES));
        let checksums = checksums.chunks_exact(CHECKSUM_BYTES);
        let blocks = values.chunks_exact(DIGEST_BYTES).zip(checksums);
        let read = blocks.map(|(value, checksum)| {
            let value = value.try_into().unwrap_or_default();
            let checksum = u32::from_be_bytes(checksum.try_into().unwrap_or_default());
            Block { value, checksum }
        });
        Self::new(size, block, read.collect())
    }

    /// Return the number of bytes of the blocks that have to be transferred.
    pub fn unknown_bytes(&self, sources: &[BlockSource]) -> u64 {
        let unknown = self.numbers(sources, |source| source == BlockSource::Unknown);
        unknown.fold(0, |bytes: u64, number| {
            let range = self.range(number);
            bytes.saturating_add(range.end.saturating_sub(range.start))
        })
    }

    /// Return the numbers, from 0 and in order, of the blocks for whose sources `is_such` is true.
    pub fn numbers(
        &self,
        sources: &[BlockSource],
        is_such: impl Fn(BlockSource) -> bool,
    ) -> impl Iterator<Item = usize> {
        let numbered = sources.iter().enumerate();
        numbered.filter_map(move |(number, source)| is_such(*source).then_some(number))
    }

    /// Return the source of each block, given the index of the older version, if there is one; one
    /// with blocks of another size is ignored.
    pub fn sources(&self, older: Option<&Self>) -> Vec<BlockSource> {
        let older = older.filter(|older| older.block == self.block);
        let before = older.map_or(&[][..], Self::blocks);
        let zeros = zeros_at(0, self.block).checksum;
        let mut elsewhere = HashMap::new();
        for (number, block) in before.iter().enumerate() {
            if older.is_some_and(|older| older.is_full(number)) {
                elsewhere.entry(block.checksum).or_insert(number);
            }
        }
        let source = |(number, block): (usize, &Block)| {
            let former = before.get(number);
            if former.is_some_and(|former| former.value == block.value) {
                BlockSource::Same
            } else if !self.is_full(number) {
                BlockSource::Unknown
            } else if block.checksum == zeros {
                BlockSource::Zeros
            } else {
                let numbers = elsewhere.get(&block.checksum);
                numbers.map_or(BlockSource::Unknown, |number| {
                    BlockSource::Elsewhere(*number)
                })
            }
        };
        self.blocks.iter().enumerate().map(source).collect()
    }

    /// Return true unless block `number` is a shorter last one.
    pub fn is_full(&self, number: usize) -> bool {
        let range = self.range(number);
        range.end.saturating_sub(range.start) == self.block
    }

    /// Encode the index: all chaining values, then all checksums.
    pub fn encode(&self) -> Vec<u8> {
        let values = self.blocks.iter().flat_map(|block| block.value);
        let checksums = self.blocks.iter();
        let checksums = checksums.flat_map(|block| block.checksum.to_be_bytes());
        values.chain(checksums).collect()
    }

    /// Return the digest of the file.
    pub fn digest(&self) -> Digest {
        merge(self.blocks.iter().map(|block| block.value)).unwrap_or_default()
    }

    /// Return the size of the file in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Return the bytes of each block but the last.
    pub fn block_size(&self) -> u64 {
        self.block
    }

    /// Return all blocks, in order.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Return the byte range of block `number`, from 0; empty behind the last one.
    pub fn range(&self, number: usize) -> Range<u64> {
        let begin = self.block.saturating_mul(number as u64).min(self.size);
        begin..begin.saturating_add(self.block).min(self.size)
    }
}

/// Return the root of BLAKE3's tree over two or more subtrees, all but the last of equal size; `None` for fewer.
pub fn merge(values: impl Iterator<Item = ChainingValue>) -> Option<Digest> {
    let mut stack: Vec<ChainingValue> = Vec::new();
    for (count_blocks, value) in values.enumerate() {
        // Close a subtree only when another follows: the last one is below the root.
        while stack.len() > count_blocks.count_ones() as usize {
            let (right, left) = (stack.pop()?, stack.pop()?);
            stack.push(merge_subtrees_non_root(&left, &right, Mode::Hash));
        }
        stack.push(value);
    }
    let mut right = stack.pop()?;
    while stack.len() > 1 {
        right = merge_subtrees_non_root(&stack.pop()?, &right, Mode::Hash);
    }
    Some(merge_subtrees_root(&stack.pop()?, &right, Mode::Hash).into())
}
