//! Stages many files by several threads.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use huai_sys::attributes::time_of;
use huai_sys::call;
use huai_sys::change;
use huai_sys::error::{Errno, Error, Result};
use huai_sys::stop::Stop;
use huai_sys::workers;

use super::content::{Copier, Fault, New, Source, Way};
use super::targets::Targets;
use crate::publish::LastFolder;
use crate::stage::verify::FileMetadata;

/// The most files that a thread takes at a time, often of one directory.
const CHUNK: usize = 32;
/// The least number of chunks for each thread, so that none waits long for another at the end.
const SHARES: usize = 4;

/// The folders of staging: open directories of this process, to which no other user writes.
#[derive(Debug, Clone, Copy)]
pub struct Area<'a> {
    /// The folder of copies, which have their paths in it; nothing else is there.
    pub folder: u32,
    /// The folder of links, named by their keys.
    pub ready: u32,
    /// The number of threads that copy, or hash a large file.
    pub threads: usize,
    /// Counts the bytes that were read.
    pub done: &'a AtomicU64,
}

/// The result of staging files.
#[derive(Debug)]
pub struct Ways {
    /// The way in which each was staged; `None` if it was not.
    pub ways: Vec<Option<Way>>,
    /// The error, if no space was left at this file.
    pub failure: Option<Error>,
}

/// The way in which one file was staged.
pub(super) type Staged = std::result::Result<Way, Fault>;

/// The open folders of one thread.
pub(super) struct Stager<'a> {
    copier: Copier<'a>,
    ready: OwnedFd,
    /// The folder of staged sources.
    pub(super) last: LastFolder,
}

impl<'a> Stager<'a> {
    fn new(area: Area<'a>, stop: &'a Stop) -> Result<Self> {
        let open = || {
            let targets = Targets::below(area.folder)?;
            Ok(Self {
                copier: Copier::new(targets, area.threads, area.done, stop),
                ready: call::reopen(area.ready)?,
                last: LastFolder::default(),
            })
        };
        open().map_err(|errno| Error::new("open", b"", errno))
    }

    /// Stage `wanted` with the content of `from`: with a `key` as a link if possible, else as a copy.  `sure` means
    /// that the content need not be checked; `Fault::Other` if it differs.
    pub(super) fn stage(
        &mut self,
        wanted: &FileMetadata,
        from: &Source<'_>,
        sure: bool,
        key: Option<&[u8]>,
    ) -> Staged {
        if let Some(key) = key {
            if !sure && Some(self.copier.digest(from)?) != wanted.digest {
                return Err(Fault::Other);
            }
            // Not every file system, and not every file of other users, can be linked.  The name
            // may belong to another file since it was opened.
            if change::make_link_by_path(from.file, self.ready.as_fd(), key).is_ok() {
                return Ok(Way::Linked);
            }
        }
        let new = New {
            path: &wanted.path,
            mtime: time_of(wanted.mtime),
            mode: wanted.mode,
            digest: wanted.digest,
            sure,
            attributes: None,
        };
        self.copier.make(&new, Some(from)).map(|made| made.way)
    }
}

/// The results of a chunk: the number of its first file, and the ways.
type Chunk = (usize, Vec<Option<Way>>);

/// The state that threads share.
struct Rows<'a, T> {
    items: &'a [T],
    /// The files of a chunk.
    chunk: usize,
    /// The next file to stage.
    next: AtomicUsize,
    /// The number of the file at which no space was left, and the error.
    failure: Mutex<Option<(usize, Errno)>>,
    stop: &'a Stop,
}

/// Call `stage` with all items, in threads, until a stop, or until no space is left: the error names the `path` of
/// the item.  An item that fails otherwise gets no way.
pub(super) fn stage_all<'a, T: Sync>(
    items: &[T],
    area: Area<'a>,
    stop: &'a Stop,
    path: impl Fn(&T) -> Vec<u8>,
    stage: impl Fn(&T, &mut Stager<'a>) -> Staged + Sync,
) -> Result<Ways> {
    let threads = area.threads.clamp(1, items.len().max(1));
    let rows = Rows {
        items,
        chunk: (items.len() / (threads * SHARES)).clamp(1, CHUNK),
        next: AtomicUsize::new(0),
        failure: Mutex::new(None),
        stop,
    };
    // Several threads that copy leave none to hash with.
    let threads_of_one = if threads > 1 { 1 } else { area.threads };
    let area = Area {
        threads: threads_of_one,
        ..area
    };
    let mut ways = vec![None; items.len()];
    for part in workers::run(threads, || {
        Ok(rows.work(&mut Stager::new(area, stop)?, &stage))
    }) {
        for (begin, some) in part? {
            for (way, found) in ways.iter_mut().skip(begin).zip(some) {
                *way = found;
            }
        }
    }
    let failure = rows
        .failure
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    let failure = failure.and_then(|(number, errno)| {
        let item = items.get(number)?;
        Some(Error::new("copy", &path(item), errno))
    });
    Ok(Ways { ways, failure })
}

impl<T> Rows<'_, T> {
    /// Stage one chunk after the other, until none is left, a stop, or no space is left.
    fn work<D>(&self, stager: &mut D, stage: &impl Fn(&T, &mut D) -> Staged) -> Vec<Chunk> {
        let mut chunks = Vec::new();
        loop {
            let begin = self.next.fetch_add(self.chunk, Ordering::Relaxed);
            let rest = self.items.get(begin..).unwrap_or_default();
            if rest.is_empty() || self.stop.is_set() {
                return chunks;
            }
            let mut ways = Vec::new();
            for (number, item) in rest.iter().take(self.chunk).enumerate() {
                match stage(item, stager) {
                    Ok(way) => ways.push(Some(way)),
                    Err(Fault::Target(errno)) if is_no_room(errno) => {
                        self.end(begin + number, errno);
                        break;
                    }
                    Err(_) => ways.push(None), // it is transferred
                }
                if self.stop.is_set() {
                    break;
                }
            }
            chunks.push((begin, ways));
        }
    }

    /// End the work of all threads; the first error is kept.
    fn end(&self, number: usize, errno: Errno) {
        self.next.store(self.items.len(), Ordering::Relaxed);
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert((number, errno));
    }
}

fn is_no_room(errno: Errno) -> bool {
    matches!(errno, Errno::NOSPC | Errno::DQUOT | Errno::ROFS)
}
