//! Computes the digests of scanned files, each proved to be that of the scanned state.
//!
//! A file is examined first, which opens no device and no fifo: a user who can write in the tree
//! cannot make a run of root open one of these, or a file elsewhere.  It is compared with the
//! scanned state before and after it is read.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use huai_format::content::block_index::{BlockIndex, block_size, may_have_index};
use huai_format::path::split;
use huai_sys::call::{self, FileType, Outcome, Status, Time};
use huai_sys::error::{Errno, Result};
use huai_sys::handle::{LastDirectory, Root};
use huai_sys::regular::open_as_seen;
use huai_sys::stop::Stop;
use huai_sys::workers;

use super::hash::{self, Blake3Digest, Reader};
use crate::scan::directory::identity;
use crate::walk::line::nearest_nanoseconds;

/// The longest tick of the clock by which the kernel dates changes.
const TICK: Duration = Duration::from_millis(10);

/// The unit of allocated blocks, in bytes.
const SECTOR: u64 = 512;

/// A file to hash.
#[derive(Debug, Clone, Copy)]
pub struct HashRequest<'a> {
    /// The path from the root.
    pub path: &'a [u8],
    /// The front of its record, up to the ctime (`scan::directory::RECORD`).
    pub identity: &'a [u8],
    /// Its digest, provided that this is its time of birth.
    pub if_born: Option<(i64, Blake3Digest)>,
}

/// The result for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashOutcome {
    /// The time of birth is right: the known digest is valid.
    Confirmed,
    /// It was hashed; the time of birth if the file system reports it.
    Read(Option<i64>, Blake3Digest),
    /// It is not, or no longer, the scanned state.
    Changed,
    /// An error of the kernel; `CANCELED` means that no time was left to read it, `FBIG` that it
    /// has more holes than may be hashed.
    Failed(Errno),
}

/// A hasher of the files below one root.
#[derive(Debug)]
pub struct Contents {
    root: Root,
    threads: usize,
    /// The bytes in holes that may still be hashed.
    holes: AtomicU64,
}

impl Contents {
    /// Open the directory `root`, which may be a symlink; `threads` files are hashed at a time.
    /// At most `holes` bytes are hashed that are not allocated on disk.
    pub fn open(root: &[u8], threads: usize, holes: u64) -> Result<Self> {
        let root = Root::open(root)?;
        let holes = AtomicU64::new(holes);
        Ok(Self {
            root,
            threads,
            holes,
        })
    }

    /// Hash files and return their results in the order of `wanted`; after a stop, those of files
    /// that were not begun are missing.
    pub fn hash_files(&self, wanted: &[HashRequest<'_>], stop: &Stop) -> Vec<HashOutcome> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut reader = Reader::default();
            let mut last = LastDirectory::default();
            let mut outcomes = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(file) = wanted.get(number).filter(|_| !stop.is_set()) else {
                    return outcomes;
                };
                let outcome = self.hash_small(file, &mut last, &mut reader, stop);
                outcomes.push((number, outcome.unwrap_or_else(HashOutcome::Failed)));
            }
        };
        let parts = workers::run(self.threads.min(wanted.len()), work);
        let mut all: Vec<_> = parts.into_iter().flatten().collect();
        all.sort_unstable_by_key(|(number, _)| *number);
        all.into_iter().map(|(_, outcomes)| outcomes).collect()
    }

    /// Hash one large file with all threads; returns its block index too if it was read.  `CANCELED` after a stop, or
    /// without time.
    pub fn hash_large(
        &self,
        wanted: &HashRequest<'_>,
        stop: &Stop,
    ) -> (HashOutcome, Option<BlockIndex>) {
        if stop.is_late() {
            return (HashOutcome::Failed(Errno::CANCELED), None);
        }
        let mut index = None;
        let mut last = LastDirectory::default();
        let outcome = self.hash_by(wanted, &mut last, |file, size| {
            if may_have_index(size) {
                index = hash::index_blocks(file, size, block_size(size), self.threads, stop)?;
            }
            Ok(index.as_ref().map(BlockIndex::digest))
        });
        (outcome.unwrap_or_else(HashOutcome::Failed), index)
    }

    /// Hash a small file; `CANCELED` if no time is left.
    fn hash_small<'a>(
        &self,
        wanted: &HashRequest<'a>,
        last: &mut LastDirectory<'a>,
        reader: &mut Reader,
        stop: &Stop,
    ) -> Outcome<HashOutcome> {
        if stop.is_late() {
            return Err(Errno::CANCELED);
        }
        self.hash_by(wanted, last, |file, size| {
            reader.hash(file, size, 1, stop).map(Some)
        })
    }

    /// Hash a file by `read`, which returns the digest of an open file of a size, or `None` for another size.
    /// `Changed` unless it has the scanned state before and after.  Not called if the time of birth confirms the
    /// known digest.  Waits a tick if the file has just changed.
    fn hash_by<'a>(
        &self,
        wanted: &HashRequest<'a>,
        last: &mut LastDirectory<'a>,
        read: impl FnOnce(BorrowedFd<'_>, u64) -> Outcome<Option<Blake3Digest>>,
    ) -> Outcome<HashOutcome> {
        let (above, name) = split(wanted.path);
        let directory = last.open(&self.root, above)?;
        let (status, birth) = call::status_with_birth_at(directory, name)?;
        if !wanted.matches(&status) {
            return Ok(HashOutcome::Changed);
        }
        let birth = birth.map(nearest_nanoseconds);
        if wanted.if_born.is_some_and(|(then, _)| birth == Some(then)) {
            return Ok(HashOutcome::Confirmed);
        }
        wait_for_clock_tick(status.ctime);
        let Some((file, _)) = open_as_seen(directory, name, &status)? else {
            return Ok(HashOutcome::Changed);
        };
        if !self.spend_holes(file.as_fd(), &status)? {
            return Err(Errno::FBIG);
        }
        let digest = read(file.as_fd(), status.size)?;
        if !wanted.matches(&call::status(file.as_fd())?) {
            return Ok(HashOutcome::Changed);
        }
        Ok(digest.map_or(HashOutcome::Changed, |digest| {
            HashOutcome::Read(birth, digest)
        }))
    }
}

impl Contents {
    /// Subtract the holes of a file from the bytes in holes that may still be hashed; false, and no change, if it has more.
    ///
    /// Zeros take as long to hash as other bytes, but cost the writer nothing.
    fn spend_holes(&self, file: BorrowedFd<'_>, status: &Status) -> Outcome<bool> {
        if status.size <= status.blocks.saturating_mul(SECTOR) {
            return Ok(true);
        }
        let left = self.holes.load(Ordering::Relaxed);
        let (mut holes, mut place) = (0, 0);
        while place < status.size && holes <= left {
            let end = status.size;
            let data = call::next_data(file, place..end)?.unwrap_or(end..end);
            holes += data.start - place;
            place = data.end.max(place + 1);
        }
        let reserved = self
            .holes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(holes)
            });
        Ok(reserved.is_ok())
    }
}

impl HashRequest<'_> {
    fn matches(&self, status: &Status) -> bool {
        status.kind == FileType::RegularFile && identity(status).as_flattened() == self.identity
    }
}

/// Wait, at most for `TICK`, until the next change of a file will get another ctime than `ctime`, its last one.
pub(crate) fn wait_for_clock_tick(ctime: Time) {
    let then = UNIX_EPOCH.checked_add(Duration::new(
        u64::try_from(ctime.seconds).unwrap_or_default(),
        ctime.nanoseconds,
    ));
    // A ctime in the future was set by another clock, which proves nothing.
    let passed = then.and_then(|then| SystemTime::now().duration_since(then).ok());
    if let Some(left) = passed.and_then(|passed| TICK.checked_sub(passed)) {
        thread::sleep(left);
    }
}
