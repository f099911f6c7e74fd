//! The content of one open file as that of a new one: sharing its blocks, or block by block.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use blake3::Hasher;
use rustix::io::Errno;

use super::targets::Targets;
use crate::hashing::hash::{Digest, Reader};
use crate::sys::attributes::{Attributes, Of};
use crate::sys::call::{self, Outcome, Status, Time};
use crate::sys::change;
use crate::sys::pace::Pace;
use crate::sys::stop::Stop;

/// What `Status::blocks` counts.
const SECTOR: u64 = 512;
/// What is a hole, or is none, in the copy of a file that has holes.
const PAGE: usize = 4096;
/// The digest of no content.
const NOTHING: Digest = [
    0xaf, 0x13, 0x49, 0xb9, 0xf5, 0xf9, 0xa1, 0xa6, 0xa0, 0x40, 0x4d, 0xea, 0x36, 0xdc, 0xc9, 0x49,
    0x9b, 0xcb, 0x25, 0xc9, 0xad, 0xc1, 0x12, 0xb7, 0xcc, 0x9a, 0x93, 0xca, 0xe4, 0x1f, 0x32, 0x62,
];

/// How a new file came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// It is the very file, under one more name.
    Linked,
    /// It shares the blocks of its source.
    Cloned,
    /// It has blocks of its own.
    Copied,
}

/// Why a file was not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Its source holds something else, or changed meanwhile.
    Other,
    /// Its source cannot be read.
    Source(Errno),
    /// It cannot be written.
    Target(Errno),
    /// The call has to end.
    Stopped,
}

impl From<Errno> for Fault {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::CANCELED => Self::Stopped,
            errno => Self::Source(errno),
        }
    }
}

/// A file that is to be made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct New<'a> {
    pub(crate) path: &'a [u8],
    pub(crate) mtime: Time,
    pub(crate) mode: u32,
    /// None: the source must not change meanwhile.
    pub(crate) digest: Option<Digest>,
    /// A clone need not be read.
    pub(crate) sure: bool,
    /// What it is to have when it is published; None: that is left to be set.
    pub(crate) attributes: Option<Attributes>,
}

/// A file that was made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Made {
    pub(crate) way: Way,
    /// It has all its attributes: it can be published as it is.
    pub(crate) finished: bool,
}

/// An open file, and what was known of it before it is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) file: BorrowedFd<'a>,
    pub(crate) status: Status,
}

impl New<'_> {
    /// Sets owner and mode; false if they are left to whoever publishes it.  What fails here fails
    /// there as well, and is told there.
    fn finish(&self, target: BorrowedFd<'_>) -> bool {
        let Some(attributes) = self.attributes.filter(Attributes::may_finish) else {
            return false;
        };
        let set = call::status(target).and_then(|status| {
            let chowned = attributes.set_owner(Of::Open(target), &status)?;
            attributes.set_mode(Of::Open(target), &status, chowned)
        });
        set.is_ok()
    }
}

/// Makes one file after the other below a folder.
#[derive(Debug)]
pub(crate) struct Copier<'a> {
    targets: Targets,
    reader: Reader,
    /// So many hash a large file.
    threads: usize,
    pace: Pace,
    /// File systems that share no blocks with that of the folder.
    apart: Vec<u64>,
    /// Bytes that were read.
    done: &'a AtomicU64,
    stop: &'a Stop,
}

impl<'a> Copier<'a> {
    /// As fast as it goes; `threads` hash a large file.
    pub(crate) fn new(
        targets: Targets,
        threads: usize,
        done: &'a AtomicU64,
        stop: &'a Stop,
    ) -> Self {
        Self {
            targets,
            reader: Reader::default(),
            threads,
            pace: Pace::new(0, None),
            apart: Vec::new(),
            done,
            stop,
        }
    }

    /// From now on at most `rate` bytes a second; 0: as fast as it goes.
    pub(crate) fn hold_to(&mut self, rate: u64) {
        self.pace = Pace::new(rate, None);
    }

    /// Makes `new` with the content of `from`; None: it is empty.  Nothing is left of it if that
    /// fails.
    pub(crate) fn make(&mut self, new: &New<'_>, from: Option<&Source<'_>>) -> Result<Made, Fault> {
        let target = self
            .targets
            .make(new.path, new.mode)
            .map_err(Fault::Target)?;
        let made = self.fill(target.as_fd(), new, from).and_then(|way| {
            let finished = new.finish(target.as_fd());
            change::set_mtime(target.as_fd(), new.mtime).map_err(Fault::Target)?;
            Ok(Made { way, finished })
        });
        if made.is_err() {
            // What went wrong first is what to tell.
            let _ = self.targets.discard(new.path);
        }
        made
    }

    /// The digest of an open file.
    pub(crate) fn digest(&mut self, from: &Source<'_>) -> Outcome<Digest> {
        let size = from.status.size;
        self.reader.hash(from.file, size, self.threads, self.stop)
    }

    fn fill(
        &mut self,
        target: BorrowedFd<'_>,
        new: &New<'_>,
        from: Option<&Source<'_>>,
    ) -> Result<Way, Fault> {
        let Some(from) = from.filter(|from| from.status.size > 0) else {
            let is_right = new.digest.is_none_or(|wanted| wanted == NOTHING);
            return is_right.then_some(Way::Copied).ok_or(Fault::Other);
        };
        let (way, digest) = if self.clone(target, from) {
            (Way::Cloned, self.digest_of_clone(target, new, from)?)
        } else {
            (Way::Copied, self.copy(target, new, from)?)
        };
        let is_right = match new.digest {
            None => is_unchanged(from)?,
            Some(wanted) => digest.is_none_or(|found| found == wanted),
        };
        is_right.then_some(way).ok_or(Fault::Other)
    }

    fn clone(&mut self, target: BorrowedFd<'_>, from: &Source<'_>) -> bool {
        if self.apart.contains(&from.status.device) {
            return false;
        }
        match change::clone(target, from.file) {
            Ok(()) => true,
            Err(Errno::OPNOTSUPP | Errno::XDEV | Errno::NOTTY | Errno::NOSYS) => {
                self.apart.push(from.status.device);
                false
            }
            Err(_) => false,
        }
    }

    /// None: it need not be known.
    fn digest_of_clone(
        &mut self,
        target: BorrowedFd<'_>,
        new: &New<'_>,
        from: &Source<'_>,
    ) -> Result<Option<Digest>, Fault> {
        if call::status(target).map_err(Fault::Target)?.size != from.status.size {
            return Err(Fault::Other);
        }
        if new.sure || new.digest.is_none() {
            return Ok(None);
        }
        let size = from.status.size;
        let digest = self.reader.hash(target, size, self.threads, self.stop)?;
        self.done.fetch_add(size, Ordering::Relaxed);
        Ok(Some(digest))
    }

    /// Holes stay holes; the digest of what was written, if one is wanted.
    fn copy(
        &mut self,
        target: BorrowedFd<'_>,
        new: &New<'_>,
        from: &Source<'_>,
    ) -> Result<Option<Digest>, Fault> {
        let size = from.status.size;
        let has_holes = from.status.blocks.saturating_mul(SECTOR) < size;
        let mut hasher = new.digest.map(|_| Hasher::new());
        let (pace, done, stop) = (&self.pace, self.done, self.stop);
        let each = |offset: u64, block: &[u8]| {
            if offset.saturating_add(block.len() as u64) > size {
                return Err(Fault::Other);
            }
            pace.spend(block.len());
            if !stop.wait_for(pace) {
                return Err(Fault::Stopped);
            }
            let written = if has_holes {
                write_data(target, offset, block)
            } else {
                change::write_at(target, offset, block)
            };
            written.map_err(Fault::Target)?;
            if let Some(hasher) = &mut hasher {
                hasher.update(block);
            }
            done.fetch_add(block.len() as u64, Ordering::Relaxed);
            Ok(())
        };
        let read = self.reader.read(from.file, 0..u64::MAX, size, stop, each)?;
        if read != size {
            return Err(Fault::Other);
        }
        if has_holes {
            change::set_size(target, size).map_err(Fault::Target)?;
        }
        Ok(hasher.map(|hasher| hasher.finalize().into()))
    }
}

/// Writes what is not zero.  The kernel is not asked where holes are: it would say how the file is
/// by then, not how it was when it was read.
fn write_data(target: BorrowedFd<'_>, offset: u64, block: &[u8]) -> Outcome<()> {
    let write = |begin: usize, end: usize| match block.get(begin..end) {
        Some(data) if !data.is_empty() => change::write_at(target, offset + begin as u64, data),
        _ => Ok(()),
    };
    let mut begin = 0;
    let mut end = 0;
    for page in block.chunks(PAGE) {
        let next = end + page.len();
        if page.iter().all(|byte| *byte == 0) {
            write(begin, end)?;
            begin = next;
        }
        end = next;
    }
    write(begin, end)
}

fn is_unchanged(from: &Source<'_>) -> Outcome<bool> {
    let (before, after) = (from.status, call::status(from.file)?);
    Ok((before.size, before.ctime) == (after.size, after.ctime))
}

#[cfg(test)]
mod tests {
    use super::NOTHING;

    #[test]
    fn the_digest_of_nothing_is_that_of_no_bytes() {
        assert_eq!(blake3::hash(b"").as_bytes(), &NOTHING);
    }
}
