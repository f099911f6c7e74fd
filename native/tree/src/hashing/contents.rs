//! The digests of files that a scan has seen, each proved to be that of what was seen.
//!
//! A file is looked at first, which opens no device and no fifo: whoever may write in the tree
//! cannot make a run of root open one of these, or a file elsewhere.  It is compared with what the
//! scan saw before it is read and afterwards.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, Builder};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use huai_format::block_index::{BlockIndex, block_size, may_have_index};
use huai_format::path::split;
use rustix::fs::FileType;
use rustix::io::Errno;

use super::hash::{self, Digest, Reader};
use crate::scan::directory::identity;
use crate::sys::call::{self, Outcome, Status, Time};
use crate::sys::error::Result;
use crate::sys::handle::{LastDirectory, Root};
use crate::sys::regular::open_as_seen;
use crate::sys::stop::Stop;
use crate::walk::line::nearest_nanoseconds;

/// The clock by which the kernel dates a change ticks at least as often.
const TICK: Duration = Duration::from_millis(10);

/// Bytes of a unit in which allocated room is counted.
const SECTOR: u64 = 512;

/// A file whose digest is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// From the root.
    pub path: &'a [u8],
    /// The front of its record, up to the ctime (`scan::directory::RECORD`).
    pub identity: &'a [u8],
    /// Its digest, if this is its time of birth.
    pub if_born: Option<(i64, Digest)>,
}

/// What was found out about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// It was born when it should be: the digest that is known holds.
    Confirmed,
    /// It was read; its time of birth, where the file system says so.
    Read(Option<i64>, Digest),
    /// It is not, or no longer, what the scan saw.
    Changed,
    /// The kernel said so; `CANCELED`: there was no time left to read it; `FBIG`: more of it is in
    /// holes than may be hashed.
    Failed(Errno),
}

/// Reads files below one root.
#[derive(Debug)]
pub struct Contents {
    root: Root,
    threads: usize,
    /// Bytes in holes of files that may still be hashed.
    holes: AtomicU64,
}

impl Contents {
    /// Below the directory `root`, which may be a symlink; `threads` files at a time.  At most
    /// `holes` bytes are hashed that take no room on the disk.
    pub fn open(root: &[u8], threads: usize, holes: u64) -> Result<Self> {
        let root = Root::open(root)?;
        let holes = AtomicU64::new(holes);
        Ok(Self {
            root,
            threads,
            holes,
        })
    }

    /// What becomes of each; after a stop there is nothing to say.
    pub fn find_out(&self, wanted: &[Wanted<'_>], stop: &Stop) -> Vec<Found> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut reader = Reader::default();
            let mut last = LastDirectory::default();
            let mut found = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(file) = wanted.get(number).filter(|_| !stop.is_set()) else {
                    return found;
                };
                let outcome = self.find_out_one(file, &mut last, &mut reader, stop);
                found.push((number, outcome.unwrap_or_else(Found::Failed)));
            }
        };
        let mut all = thread::scope(|scope| {
            let spawn = |_| Builder::new().spawn_scoped(scope, work).ok();
            // Fewer threads do it as well.
            let workers = self.threads.min(wanted.len());
            let workers: Vec<_> = (1..workers).map_while(spawn).collect();
            let mut all = work();
            for worker in workers {
                let found = worker.join();
                all.extend(found.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            all
        });
        all.sort_unstable_by_key(|(number, _)| *number);
        all.into_iter().map(|(_, found)| found).collect()
    }

    /// What becomes of one large file, and its block index if it was read; all threads read it.
    pub fn find_out_large(&self, wanted: &Wanted<'_>, stop: &Stop) -> (Found, Option<BlockIndex>) {
        if stop.is_late() {
            return (Found::Failed(Errno::CANCELED), None);
        }
        let mut index = None;
        let mut last = LastDirectory::default();
        let found = self.find_out_by(wanted, &mut last, |file, size| {
            if may_have_index(size) {
                index = hash::index_blocks(file, size, block_size(size), self.threads, stop)?;
            }
            Ok(index.as_ref().map(BlockIndex::digest))
        });
        (found.unwrap_or_else(Found::Failed), index)
    }

    fn find_out_one<'a>(
        &self,
        wanted: &Wanted<'a>,
        last: &mut LastDirectory<'a>,
        reader: &mut Reader,
        stop: &Stop,
    ) -> Outcome<Found> {
        if stop.is_late() {
            return Err(Errno::CANCELED);
        }
        self.find_out_by(wanted, last, |file, size| {
            reader.hash(file, size, 1, stop).map(Some)
        })
    }

    /// `read` gives the digest of an open file of a size; None: it is not as large.
    fn find_out_by<'a>(
        &self,
        wanted: &Wanted<'a>,
        last: &mut LastDirectory<'a>,
        read: impl FnOnce(BorrowedFd<'_>, u64) -> Outcome<Option<Digest>>,
    ) -> Outcome<Found> {
        let (above, name) = split(wanted.path);
        let directory = last.open(&self.root, above)?;
        let (status, birth) = call::status_with_birth_at(directory, name)?;
        if !wanted.is(&status) {
            return Ok(Found::Changed);
        }
        let birth = birth.map(nearest_nanoseconds);
        if wanted.if_born.is_some_and(|(then, _)| birth == Some(then)) {
            return Ok(Found::Confirmed);
        }
        let_tick(status.ctime);
        let Some((file, _)) = open_as_seen(directory, name, &status)? else {
            return Ok(Found::Changed);
        };
        if !self.spend_holes(file.as_fd(), &status)? {
            return Err(Errno::FBIG);
        }
        let digest = read(file.as_fd(), status.size)?;
        if !wanted.is(&call::status(file.as_fd())?) {
            return Ok(Found::Changed);
        }
        Ok(digest.map_or(Found::Changed, |digest| Found::Read(birth, digest)))
    }
}

impl Contents {
    /// False if more of a file is in holes than may still be hashed.
    ///
    /// Zeros have to be hashed as other bytes have, but cost who writes them nothing.
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

impl Wanted<'_> {
    fn is(&self, status: &Status) -> bool {
        status.kind == FileType::RegularFile && identity(status).as_flattened() == self.identity
    }
}

/// Waits until a change to come gets another ctime than the last one.
pub(crate) fn let_tick(ctime: Time) {
    let then = UNIX_EPOCH.checked_add(Duration::new(
        u64::try_from(ctime.seconds).unwrap_or_default(),
        ctime.nanoseconds,
    ));
    // One that lies ahead was set by another clock, which tells nothing.
    let passed = then.and_then(|then| SystemTime::now().duration_since(then).ok());
    if let Some(left) = passed.and_then(|passed| TICK.checked_sub(passed)) {
        thread::sleep(left);
    }
}
