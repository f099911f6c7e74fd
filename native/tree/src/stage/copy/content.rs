//! Copies the content of an open file to a new one: shared blocks, or block by block.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use blake3::Hasher;
use huai_sys::attributes::{Attributes, Of, time_of};
use huai_sys::call::{self, Outcome, Status, Time};
use huai_sys::change;
use huai_sys::error::Errno;
use huai_sys::pace::Pace;
use huai_sys::stop::Stop;

use super::targets::Targets;
use crate::hashing::hash::{Blake3Digest, Reader};
use crate::stage::verify::VerifyRequest;

/// The unit of `Status::blocks`, in bytes.
const SECTOR: u64 = 512;
/// The unit of holes in the copy of a file with holes, in bytes.
const PAGE: usize = 4096;
/// The digest of empty content.
const NOTHING: Blake3Digest = [
    0xaf, 0x13, 0x49, 0xb9, 0xf5, 0xf9, 0xa1, 0xa6, 0xa0, 0x40, 0x4d, 0xea, 0x36, 0xdc, 0xc9, 0x49,
    0x9b, 0xcb, 0x25, 0xc9, 0xad, 0xc1, 0x12, 0xb7, 0xcc, 0x9a, 0x93, 0xca, 0xe4, 0x1f, 0x32, 0x62,
];

/// The ways in which a file is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The file is another name of its source.
    Linked,
    /// The file shares the blocks of its source.
    Cloned,
    /// The file has separate blocks.
    Copied,
}

/// The reason why a file was not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The source has other content, or changed meanwhile.
    Other,
    /// The source is unreadable.
    Source(Errno),
    /// The file cannot be written.
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

/// A file to make.
#[derive(Debug, Clone, Copy)]
pub(crate) struct New<'a> {
    pub(crate) path: &'a [u8],
    pub(crate) mtime: Time,
    pub(crate) mode: u32,
    /// The expected digest; `None` if instead the source must not change.
    pub(crate) digest: Option<Blake3Digest>,
    /// True if a clone need not be read.
    pub(crate) sure: bool,
    /// The final attributes; `None` if they are set later.
    pub(crate) attributes: Option<Attributes>,
}

/// A file that was made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CopiedFile {
    pub(crate) way: Way,
    /// True if it has all its attributes and can be published.
    pub(crate) finished: bool,
}

/// An open file, with its status before it is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) file: BorrowedFd<'a>,
    pub(crate) status: Status,
}

impl<'a> New<'a> {
    /// Make the requested file, of a source that is read.
    pub(crate) fn of(asked: &'a VerifyRequest) -> Self {
        let file = &asked.wanted;
        Self {
            path: &file.path,
            mtime: time_of(file.mtime),
            mode: file.mode,
            digest: file.digest,
            sure: false,
            attributes: asked.attributes,
        }
    }

    /// Set owner and mode of the file that `targets` made last; false if publishing has to set them.
    /// An error here would occur there as well, and is reported there.
    pub(crate) fn finish(&self, target: BorrowedFd<'_>, targets: &mut Targets) -> bool {
        let Some(attributes) = self.attributes.filter(Attributes::may_finish) else {
            return false;
        };
        let status = targets.status_of_new(target, self.mode);
        let set = status.and_then(|status| {
            let chowned = attributes.set_owner(Of::Open(target), &status)?;
            attributes.set_mode(Of::Open(target), &status, chowned)
        });
        set.is_ok()
    }
}

/// A copier that makes files below a folder.
#[derive(Debug)]
pub(crate) struct Copier<'a> {
    targets: Targets,
    reader: Reader,
    /// The number of threads that hash a large file.
    threads: usize,
    pace: Pace,
    /// The device numbers of file systems that share no blocks with that of the folder.
    unshared_devices: Vec<u64>,
    /// Counts the bytes that were read.
    done: &'a AtomicU64,
    stop: &'a Stop,
}

impl<'a> Copier<'a> {
    /// Copy without a rate limit; `threads` hash a large file.
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
            unshared_devices: Vec::new(),
            done,
            stop,
        }
    }

    /// Limit the rate to `rate` bytes per second; 0 removes the limit.
    pub(crate) fn set_rate(&mut self, rate: u64) {
        self.pace = Pace::new(rate, None);
    }

    /// Make `new` with the content of `from`, or empty, and set its time; owner and mode too if given and allowed.
    /// Fails with `Other` unless the content is proved.  After an error nothing of it is left.
    pub(crate) fn make(
        &mut self,
        new: &New<'_>,
        from: Option<&Source<'_>>,
    ) -> Result<CopiedFile, Fault> {
        let target = self
            .targets
            .make(new.path, new.mode)
            .map_err(Fault::Target)?;
        let outcome = self.fill(target.as_fd(), new, from).and_then(|way| {
            let finished = new.finish(target.as_fd(), &mut self.targets);
            change::set_mtime(target.as_fd(), new.mtime).map_err(Fault::Target)?;
            Ok(CopiedFile { way, finished })
        });
        if outcome.is_err() {
            // The first error is reported.
            let _ = self.targets.discard(new.path);
        }
        outcome
    }

    /// Return the digest of an open file.
    pub(crate) fn digest(&mut self, from: &Source<'_>) -> Outcome<Blake3Digest> {
        let size = from.status.size;
        self.reader.hash(from.file, size, self.threads, self.stop)
    }

    /// Clone or copy the content, and check it; `Other` if it is not the wanted one.
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
        let (way, digest) = if self.try_clone(target, from) {
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

    /// Try to share the blocks of the source, true if it does; remembers a file system that cannot.
    fn try_clone(&mut self, target: BorrowedFd<'_>, from: &Source<'_>) -> bool {
        if self.unshared_devices.contains(&from.status.device) {
            return false;
        }
        match change::clone(target, from.file) {
            Ok(()) => true,
            Err(Errno::OPNOTSUPP | Errno::XDEV | Errno::NOTTY | Errno::NOSYS) => {
                self.unshared_devices.push(from.status.device);
                false
            }
            Err(_) => false,
        }
    }

    /// Return the digest of a clone; `None` if it is not needed.  Fails with `Other` if its size is not that of the
    /// source.
    fn digest_of_clone(
        &mut self,
        target: BorrowedFd<'_>,
        new: &New<'_>,
        from: &Source<'_>,
    ) -> Result<Option<Blake3Digest>, Fault> {
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

    /// Copy content at the limited rate, keeping holes; returns its digest if one is expected.  A
    /// fault if the source's size has changed.
    fn copy(
        &mut self,
        target: BorrowedFd<'_>,
        new: &New<'_>,
        from: &Source<'_>,
    ) -> Result<Option<Blake3Digest>, Fault> {
        let size = from.status.size;
        let has_holes = from.status.blocks.saturating_mul(SECTOR) < size;
        let mut hasher = new.digest.map(|_| Hasher::new());
        let (pace, done, stop) = (&self.pace, self.done, self.stop);
        let write_block = |offset: u64, block: &[u8]| {
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
        let read = self
            .reader
            .read(from.file, 0..u64::MAX, size, stop, write_block)?;
        if read != size {
            return Err(Fault::Other);
        }
        if has_holes {
            change::set_size(target, size).map_err(Fault::Target)?;
        }
        Ok(hasher.map(|hasher| hasher.finalize().into()))
    }
}

/// Write the parts that are not zeros.  The kernel is not asked for holes: it would report the
/// present ones, not those when the file was read.
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
