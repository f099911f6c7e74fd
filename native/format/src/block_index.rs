//! The block index of a large file: what proves each of its blocks (FORMAT.md, "Block indices").
//!
//! The chaining values of BLAKE3's own tree at the size of a block give the file's digest, so an
//! index is proved by the digest, and a block by the index.  A chaining value depends on where the
//! block stands; the CRC-32 beside it does not, and says where else the block may be found.

use std::collections::HashMap;
use std::ops::Range;

use blake3::Hasher;
use blake3::hazmat::{
    ChainingValue, HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root,
};

use crate::crc::Crc32;
use crate::entry::Digest;
use crate::error::{Error, Result};
use crate::limits::{BLOCK_INDEX_BLOCKS, DIGEST_BYTES};

/// The smallest block.  Smaller ones cost more to know than they save.
const SMALLEST: u64 = 64 << 10;
/// The largest block of a file that needs no larger one to stay within `BLOCK_INDEX_BLOCKS`.
const USUAL: u64 = 1 << 20;
/// A file of smaller blocks has at most so many: an index of half a MiB.
const FEW: u64 = 16 << 10;
const CHECKSUM_BYTES: usize = 4;
/// Bytes that an index has for each block.
pub const BYTES_OF_BLOCK: usize = DIGEST_BYTES + CHECKSUM_BYTES;

/// How large the blocks of a file of `size` bytes are.
pub fn block_size(size: u64) -> u64 {
    let mut block = SMALLEST;
    while count(size, block)
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

/// Whether a file of `size` bytes can have an index: a single block would be the file itself.
pub fn may_have_index(size: u64) -> bool {
    size > SMALLEST
}

/// How many bytes the index of a file of `size` bytes has.
pub fn length(size: u64) -> u64 {
    count(size, block_size(size)).saturating_mul(BYTES_OF_BLOCK as u64)
}

fn count(size: u64, block: u64) -> u64 {
    size.div_ceil(block.max(1))
}

/// What is known of one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// The chaining value of BLAKE3 for these bytes at this place of the file.
    pub value: ChainingValue,
    /// CRC-32, wherever they stand.
    pub checksum: u32,
}

/// Where a block of a new file comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// From its place in the older version.
    Same,
    /// Perhaps from block `.0` of the older version: the checksum is no proof.
    Elsewhere(usize),
    /// Perhaps it is zeros.
    Zeros,
    /// From elsewhere.
    Unknown,
}

/// Takes the bytes of one block.
#[derive(Debug)]
pub struct BlockHasher {
    hasher: Hasher,
    checksum: Crc32,
}

impl BlockHasher {
    /// Of the block at `offset`, a multiple of its size.
    pub fn new(offset: u64) -> Self {
        let mut hasher = Hasher::new();
        hasher.set_input_offset(offset);
        Self {
            hasher,
            checksum: Crc32::default(),
        }
    }

    /// What comes next.
    pub fn update(&mut self, content: &[u8]) {
        self.hasher.update(content);
        self.checksum.update(content);
    }

    /// The block of all that came.
    pub fn finish(&self) -> Block {
        Block {
            value: self.hasher.finalize_non_root(),
            checksum: self.checksum.value(),
        }
    }
}

/// The block of `size` zeros at `offset`.
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

/// The blocks of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockIndex {
    size: u64,
    block: u64,
    blocks: Vec<Block>,
}

impl BlockIndex {
    /// Of all blocks of a file of `size` bytes, in order; each but the last has `block` bytes.
    pub fn new(size: u64, block: u64, blocks: Vec<Block>) -> Result<Self> {
        if !may_have_index(size) || blocks.len() as u64 != count(size, block) {
            return Err(Error::new("not as many blocks as the file has"));
        }
        Ok(Self {
            size,
            block,
            blocks,
        })
    }

    /// The index that `bytes` spell, if it is that of the file of `size` bytes with this digest.
    pub fn decode(bytes: &[u8], size: u64, digest: &Digest) -> Result<Self> {
        let index = Self::read(bytes, size)?;
        if index.digest() != *digest {
            return Err(Error::new("a block index of another file"));
        }
        Ok(index)
    }

    /// The index that `bytes` spell of some file of `size` bytes: nothing proves it.
    pub fn read(bytes: &[u8], size: u64) -> Result<Self> {
        let block = block_size(size);
        let blocks = usize::try_from(count(size, block)).unwrap_or(usize::MAX);
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

    /// Bytes of the blocks that come from elsewhere, as far as the indices tell.
    pub fn unknown(&self, places: &[Place]) -> u64 {
        let unknown = self.numbers(places, |place| place == Place::Unknown);
        unknown.fold(0, |bytes: u64, number| {
            let range = self.range(number);
            bytes.saturating_add(range.end.saturating_sub(range.start))
        })
    }

    /// The numbers of the blocks at such places.
    pub fn numbers(
        &self,
        places: &[Place],
        is_such: impl Fn(Place) -> bool,
    ) -> impl Iterator<Item = usize> {
        let numbered = places.iter().enumerate();
        numbered.filter_map(move |(number, place)| is_such(*place).then_some(number))
    }

    /// Where each block comes from, if what `other` is of is here.
    pub fn places(&self, other: Option<&Self>) -> Vec<Place> {
        let other = other.filter(|other| other.block == self.block);
        let before = other.map_or(&[][..], Self::blocks);
        let zeros = zeros_at(0, self.block).checksum;
        let mut elsewhere = HashMap::new();
        for (number, block) in before.iter().enumerate() {
            if other.is_some_and(|other| other.is_full(number)) {
                elsewhere.entry(block.checksum).or_insert(number);
            }
        }
        let place = |(number, block): (usize, &Block)| {
            let there = before.get(number);
            if there.is_some_and(|there| there.value == block.value) {
                Place::Same
            } else if !self.is_full(number) {
                Place::Unknown
            } else if block.checksum == zeros {
                Place::Zeros
            } else {
                let found = elsewhere.get(&block.checksum);
                found.map_or(Place::Unknown, |number| Place::Elsewhere(*number))
            }
        };
        self.blocks.iter().enumerate().map(place).collect()
    }

    /// Whether block `number` is not a last one that is shorter.
    pub fn is_full(&self, number: usize) -> bool {
        let range = self.range(number);
        range.end.saturating_sub(range.start) == self.block
    }

    /// The bytes that spell it: all chaining values, then all checksums.
    pub fn encode(&self) -> Vec<u8> {
        let values = self.blocks.iter().flat_map(|block| block.value);
        let checksums = self.blocks.iter();
        let checksums = checksums.flat_map(|block| block.checksum.to_be_bytes());
        values.chain(checksums).collect()
    }

    /// The digest of the file.
    pub fn digest(&self) -> Digest {
        merge(self.blocks.iter().map(|block| block.value)).unwrap_or_default()
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes of each block but the last.
    pub fn block_size(&self) -> u64 {
        self.block
    }

    /// All blocks, in order.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Where block `number` stands in the file.
    pub fn range(&self, number: usize) -> Range<u64> {
        let begin = self.block.saturating_mul(number as u64).min(self.size);
        begin..begin.saturating_add(self.block).min(self.size)
    }
}

/// The root of BLAKE3's tree above at least two subtrees, all but the last of the same size.
pub fn merge(values: impl Iterator<Item = ChainingValue>) -> Option<Digest> {
    let mut stack: Vec<ChainingValue> = Vec::new();
    for (count, value) in values.enumerate() {
        // A subtree is closed only when something follows: the last one is below the root.
        while stack.len() > count.count_ones() as usize {
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
