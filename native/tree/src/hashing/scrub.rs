//! Checks that files still have the content of their digests.
//!
//! Files are read one by one, by one thread, because nothing here is urgent.  A file with another
//! size or time than expected is not judged, nor one that changes while it is read.

use std::os::fd::AsFd;

use huai_format::path::split;
use huai_sys::call::{self, FileType, Outcome, Status};
use huai_sys::error::{Errno, Error, Result};
use huai_sys::handle::{LastDirectory, Root};
use huai_sys::regular::{is_absence, open_as_seen};
use huai_sys::stop::Stop;

use super::contents::wait_for_clock_tick;
use super::hash::{Blake3Digest, Reader};
use crate::walk::line::nanoseconds;

/// The expected state of a file.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    /// The path from the root.
    pub path: &'a [u8],
    /// The size in bytes.
    pub size: u64,
    /// The time in nanoseconds since the epoch.
    pub mtime: i64,
    /// The digest of its content.
    pub digest: Blake3Digest,
}

/// The verdict on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It has the expected content.
    Same,
    /// It has another size or time, is gone, or changed meanwhile.
    Changed,
    /// It has other content under the expected size and time; its inode and its
    /// ctime in nanoseconds show later if it was touched since.
    Damaged(Blake3Digest, (u64, i64)),
    /// It is unreadable.
    Failed(Errno),
}

/// A reader of the files below one root.
#[derive(Debug)]
pub struct Scrub(Root);

impl Scrub {
    /// Open the directory `root`, which may be a symlink.
    pub fn open(root: &[u8]) -> Result<Self> {
        Root::open(root).map(Self)
    }

    /// Return the verdict on each file, in order, `Changed` if it is missing; fewer after a stop, and when the time
    /// is up.
    pub fn read<'a>(&self, files: impl Iterator<Item = Expected<'a>>, stop: &Stop) -> Vec<Verdict> {
        let mut reader = Reader::default();
        let mut last = LastDirectory::default();
        let mut verdicts = Vec::new();
        for file in files {
            match self.read_one(&file, &mut last, &mut reader, stop) {
                Ok(verdict) => verdicts.push(verdict),
                Err(Errno::CANCELED) => break,
                Err(errno) if is_absence(errno) => verdicts.push(Verdict::Changed),
                Err(errno) => verdicts.push(Verdict::Failed(errno)),
            }
        }
        verdicts
    }

    /// Return inode and ctime, in nanoseconds, of the entry at `path`, of any type; `None` if it is missing.
    pub fn identity(&self, path: &[u8]) -> Result<Option<(u64, i64)>> {
        let (above, name) = split(path);
        let folder = self.0.enter(above);
        match folder.and_then(|directory| call::status_at(directory.as_fd(), name)) {
            Ok(status) => Ok(Some(identity(&status))),
            Err(errno) if is_absence(errno) => Ok(None),
            Err(errno) => Err(Error::new("open", path, errno)),
        }
    }

    /// Hash a file, and compare it with its digest; a file that changed since is not read.  `CANCELED` after a stop,
    /// and when the time is up.
    fn read_one<'a>(
        &self,
        file: &Expected<'a>,
        last: &mut LastDirectory<'a>,
        reader: &mut Reader,
        stop: &Stop,
    ) -> Outcome<Verdict> {
        if stop.is_late() || stop.is_set() {
            return Err(Errno::CANCELED);
        }
        let (above, name) = split(file.path);
        let directory = last.open(&self.0, above)?;
        let before = call::status_at(directory, name)?;
        if !file.matches(&before) {
            return Ok(Verdict::Changed);
        }
        wait_for_clock_tick(before.ctime);
        let Some((open, _)) = open_as_seen(directory, name, &before)? else {
            return Ok(Verdict::Changed);
        };
        let digest = reader.hash(open.as_fd(), before.size, 1, stop)?;
        if digest == file.digest {
            return Ok(Verdict::Same);
        }
        let after = call::status(open.as_fd())?;
        if !file.matches(&after) || identity(&after) != identity(&before) {
            return Ok(Verdict::Changed);
        }
        Ok(Verdict::Damaged(digest, identity(&after)))
    }
}

impl Expected<'_> {
    /// Return true for a regular file of the expected size and mtime.
    fn matches(&self, status: &Status) -> bool {
        status.kind == FileType::RegularFile
            && status.size == self.size
            && nanoseconds(status.mtime) == Some(self.mtime)
    }
}

fn identity(status: &Status) -> (u64, i64) {
    (status.inode, nanoseconds(status.ctime).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_leaves_the_rest_unread() {
        let scrub = Scrub::open(b"/").unwrap();
        let stop = Stop::default();
        let missing_file = Expected {
            path: b"no/such/file",
            size: 0,
            mtime: 0,
            digest: [0; 32],
        };
        assert_eq!(
            scrub.read([missing_file].into_iter(), &stop),
            [Verdict::Changed]
        );
        stop.set();
        assert!(scrub.read([missing_file].into_iter(), &stop).is_empty());
    }
}
