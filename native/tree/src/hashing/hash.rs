//! Hashes open files with BLAKE3-256.
//!
//! Files are read, not mapped: with a memory map, a disk error would be a signal that kills the
//! process.

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use blake3::Hasher;
use blake3::hazmat::{ChainingValue, HasherExt};
use huai_format::content::block_index::{Block, BlockHasher, BlockIndex, merge};
use huai_sys::call::{self, Outcome};
use huai_sys::error::{Errno, Error, Result};
use huai_sys::stop::Stop;
use huai_sys::workers;

/// The BLAKE3-256 digest of content.
pub type Blake3Digest = [u8; 32];

/// The bytes of a read, after which `Stop` is checked.
const BLOCK: usize = 256 << 10;
/// The bytes of a large file that a thread hashes at a time: a subtree of BLAKE3, so a power of
/// two.
const PIECE: u64 = 4 << 20;
/// The size in bytes from which several threads are faster.
const LARGE: u64 = 64 << 20;

/// A hasher of content that comes in parts.
#[derive(Debug, Default)]
pub struct Blake3(Hasher);

impl Blake3 {
    /// Add the next bytes.
    pub fn update(&mut self, content: &[u8]) {
        self.0.update(content);
    }

    /// Return the digest of all bytes so far.
    pub fn digest(&self) -> Blake3Digest {
        self.0.finalize().into()
    }
}

/// An open file to hash.
#[derive(Debug)]
pub struct Content {
    file: OwnedFd,
    /// The size in bytes when it was opened.
    pub size: u64,
}

impl Content {
    /// Reopen the file that this process has open as `number`.
    pub fn reopen(number: u32) -> Result<Self> {
        let open = || {
            let file = call::reopen(number)?;
            let size = call::status(file.as_fd())?.size;
            Ok(Self { file, size })
        };
        open().map_err(failed)
    }

    /// Return the index of the file with blocks of `block` bytes; `None` if the size changed, or the file cannot have
    /// an index.  `CANCELED` after a stop.
    pub fn index(&self, block: u64, threads: usize, stop: &Stop) -> Result<Option<BlockIndex>> {
        let index = index_blocks(self.file.as_fd(), self.size, block, threads, stop);
        index.map_err(failed)
    }

    /// Return the digest of the file; a large one is hashed by `threads` threads.  Fails with
    /// `CANCELED` after a stop.
    pub fn hash(&self, threads: usize, stop: &Stop) -> Result<Blake3Digest> {
        let file = self.file.as_fd();
        let digest = Reader::default().hash(file, self.size, threads, stop);
        digest.map_err(failed)
    }
}

fn failed(errno: Errno) -> Error {
    Error::new("read", b"", errno)
}

/// A buffer that is reused for many files.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    block: Vec<u8>,
}

impl Reader {
    /// Return the digest of a file of about `size` bytes; a large one is hashed by `threads` threads.  `CANCELED`
    /// after a stop.
    pub(crate) fn hash(
        &mut self,
        file: BorrowedFd<'_>,
        size: u64,
        threads: usize,
        stop: &Stop,
    ) -> Outcome<Blake3Digest> {
        if threads > 1 && size >= LARGE {
            if let Some(digest) = hash_pieces(file, size, threads, stop)? {
                return Ok(digest);
            }
        }
        let mut hasher = Hasher::new();
        self.read(file, 0..u64::MAX, size, stop, |_, block| {
            hasher.update(block);
            Ok::<_, Errno>(())
        })?;
        Ok(hasher.finalize().into())
    }

    /// Call a function with each block of `range` and its offset, up to the end of the file, which
    /// has about `size` bytes; returns the bytes read.  Fails with `CANCELED` after a stop, and
    /// when its time is over.
    pub(crate) fn read<E: From<Errno>>(
        &mut self,
        file: BorrowedFd<'_>,
        range: Range<u64>,
        size: u64,
        stop: &Stop,
        mut each: impl FnMut(u64, &[u8]) -> std::result::Result<(), E>,
    ) -> std::result::Result<u64, E> {
        let room = usize::try_from(size.saturating_add(1)).map_or(BLOCK, |all| all.min(BLOCK));
        if self.block.len() < room {
            let more = room - self.block.len();
            self.block
                .try_reserve_exact(more)
                .map_err(|_| Errno::NOMEM)?;
            self.block.resize(room, 0);
        }
        let mut offset = range.start;
        while offset < range.end {
            if !stop.wait_to_read() {
                return Err(Errno::CANCELED.into());
            }
            let left = usize::try_from(range.end - offset).unwrap_or(usize::MAX);
            let most = left.min(self.block.len());
            let room = &mut self.block[..most];
            let count = call::read_at(file, offset, room)?;
            if count == 0 {
                break;
            }
            stop.count_read(count);
            each(offset, &room[..count])?;
            offset += count as u64;
            // The last bytes were read, although one more was requested.
            if count < most && offset == size {
                break;
            }
        }
        Ok(offset - range.start)
    }
}

/// Return the digest of a file of `size` bytes by several threads; `None` if it had another size.
fn hash_pieces(
    file: BorrowedFd<'_>,
    size: u64,
    threads: usize,
    stop: &Stop,
) -> Outcome<Option<Blake3Digest>> {
    let values = hash_all::<Hasher>(file, size, PIECE, threads, stop)?;
    Ok(values.and_then(|values| merge(values.into_iter())))
}

/// Return the index of a file of `size` bytes in blocks of `block` bytes, by several threads;
/// `None` if it had another size, or cannot have an index.
pub(crate) fn index_blocks(
    file: BorrowedFd<'_>,
    size: u64,
    block: u64,
    threads: usize,
    stop: &Stop,
) -> Outcome<Option<BlockIndex>> {
    let blocks = hash_all::<BlockHasher>(file, size, block, threads, stop)?;
    Ok(blocks.and_then(|blocks| BlockIndex::new(size, block, blocks).ok()))
}

/// A subtree of BLAKE3's tree.
trait Subtree: Sized {
    type Value: Send;
    /// Begin the subtree at `offset`.
    fn begin(offset: u64) -> Self;
    fn add(&mut self, content: &[u8]);
    fn value(&self) -> Self::Value;
}

impl Subtree for Hasher {
    type Value = ChainingValue;

    fn begin(offset: u64) -> Self {
        let mut hasher = Self::new();
        hasher.set_input_offset(offset);
        hasher
    }

    fn add(&mut self, content: &[u8]) {
        self.update(content);
    }

    fn value(&self) -> ChainingValue {
        self.finalize_non_root()
    }
}

impl Subtree for BlockHasher {
    type Value = Block;

    fn begin(offset: u64) -> Self {
        Self::new(offset)
    }

    fn add(&mut self, content: &[u8]) {
        self.update(content);
    }

    fn value(&self) -> Block {
        self.finish()
    }
}

/// Hash all subtrees of `piece` bytes, in order; `None` if the file had another size, `CANCELED` after a stop.
fn hash_all<S: Subtree>(
    file: BorrowedFd<'_>,
    size: u64,
    piece: u64,
    threads: usize,
    stop: &Stop,
) -> Outcome<Option<Vec<S::Value>>> {
    let next = AtomicU64::new(0);
    let parts = workers::run(threads, || hash_some::<S>(file, size, piece, &next, stop));
    let parts = parts.into_iter().collect::<Outcome<Vec<_>>>()?;
    let mut values: Vec<_> = parts.into_iter().flatten().collect();
    values.sort_unstable_by_key(|(offset, _)| *offset);
    let is_complete = values.len() as u64 == size.div_ceil(piece);
    let ends = || Ok::<_, Errno>(call::read_at(file, size, &mut [0])? == 0);
    if !is_complete || !ends()? {
        return Ok(None);
    }
    Ok(Some(values.into_iter().map(|(_, value)| value).collect()))
}

/// Hash one piece after the other until none is left, or one is incomplete.  Returns offset and value of each complete
/// one.
fn hash_some<S: Subtree>(
    file: BorrowedFd<'_>,
    size: u64,
    piece: u64,
    next: &AtomicU64,
    stop: &Stop,
) -> Outcome<Vec<(u64, S::Value)>> {
    let mut reader = Reader::default();
    let mut values = Vec::new();
    loop {
        let offset = next.fetch_add(piece, Ordering::Relaxed);
        if offset >= size {
            return Ok(values);
        }
        let end = size.min(offset.saturating_add(piece));
        let mut subtree = S::begin(offset);
        let count = reader.read(file, offset..end, size, stop, |_, block| {
            subtree.add(block);
            Ok::<_, Errno>(())
        })?;
        if count < end - offset {
            return Ok(values);
        }
        values.push((offset, subtree.value()));
    }
}
