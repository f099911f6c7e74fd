//! Copies content from a local path that a content URL names.
//!
//! Other users may change files there at any time: a copy is proved by its digest, or by
//! a source that is the same before and after.  An opened file below the path was reached through
//! directories only.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::sync::atomic::AtomicU64;

use huai_format::path::split;
use huai_sys::call::{self, FileType, Status};
use huai_sys::error::{Errno, Error, Result, is_shortage};
use huai_sys::handle::{LastDirectory, Root};
use huai_sys::regular::open_as_seen;
use huai_sys::stop::Stop;

use super::content::{CopiedFile, Copier, Fault, New, Source};
use super::targets::Targets;
use crate::stage::verify::{VerifyRequest, fits};

/// The result for a requested file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyArrival {
    /// It was copied, with size, time and content of the metadata.
    Arrived,
    /// It was copied with owner and mode too, and can be published.
    Finished,
    /// It is missing, or has no content.
    Missing,
    /// Something else is there; its content was copied if that was requested.
    Mismatch,
    /// It may not be read.
    Denied,
    /// The call ended before.
    Unreached,
}

/// The result of copying files.
#[derive(Debug)]
pub struct Copies {
    /// The results in the order of the files.
    pub arrivals: Vec<CopyArrival>,
    /// The reason for an early end: the file could not be written.
    pub failure: Option<Error>,
}

/// The limits of copying.
#[derive(Debug)]
pub struct Limits {
    /// The bytes per second; 0 for no limit.
    pub rate: u64,
    /// The files, by number, that may differ from the metadata, and the most bytes of each.
    pub newer: HashMap<usize, u64>,
}

/// The directory that content is copied from.
#[derive(Debug)]
pub struct Origin {
    root: Root,
}

impl Origin {
    /// Reopen the open directory `source` of this process.
    pub fn reopen(source: u32) -> Result<Self> {
        let root = call::reopen(source).and_then(Root::try_of);
        root.map(|root| Self { root })
            .map_err(|errno| Error::new("open", b"", errno))
    }

    /// Copy files to the same paths below `folder`, an open directory of this process to which no other user writes;
    /// adds the bytes to `done`.  Ends after a stop, or if a file cannot be written, with the results so far.
    pub fn copy(
        &self,
        files: &[VerifyRequest],
        folder: u32,
        limits: &Limits,
        done: &AtomicU64,
        stop: &Stop,
    ) -> Result<Copies> {
        let targets = Targets::below(folder).map_err(|errno| Error::new("open", b"", errno))?;
        let mut copier = Copier::new(targets, 1, done, stop);
        copier.set_rate(limits.rate);
        let mut last = LastDirectory::default();
        let mut arrivals = vec![CopyArrival::Unreached; files.len()];
        let mut failure = None;
        for (number, (arrival, file)) in arrivals.iter_mut().zip(files).enumerate() {
            if stop.is_set() {
                break;
            }
            let newer = limits.newer.get(&number).copied();
            match self.copy_one(file, newer, &mut last, &mut copier) {
                Ok(found) => *arrival = found,
                Err(Fault::Stopped) => break,
                Err(Fault::Other) => *arrival = CopyArrival::Mismatch,
                Err(Fault::Target(errno)) => {
                    failure = Some(Error::new("write", &file.wanted.path, errno));
                    break;
                }
                Err(Fault::Source(errno)) if is_shortage(errno) => {
                    failure = Some(Error::new("open", &file.wanted.path, errno));
                    break;
                }
                Err(Fault::Source(errno)) => *arrival = unreadable(errno),
            }
        }
        Ok(Copies { arrivals, failure })
    }

    /// Copy a file that is as its metadata; another version too, as a `Mismatch`, if it has at most `newer` bytes.
    fn copy_one<'a>(
        &self,
        request: &'a VerifyRequest,
        newer: Option<u64>,
        last: &mut LastDirectory<'a>,
        copier: &mut Copier<'_>,
    ) -> std::result::Result<CopyArrival, Fault> {
        let file = &request.wanted;
        let (above, name) = split(&file.path);
        let directory = last.open(&self.root, above)?;
        // Examined first, because opening a device may have an effect.
        let status = call::status_at(directory, name)?;
        match status.kind {
            FileType::RegularFile => {}
            FileType::Directory => return Ok(CopyArrival::Mismatch),
            _ => return Ok(CopyArrival::Missing),
        }
        let may_be = fits(&status, file);
        if may_be && file.size == 0 {
            return copier.make(&New::of(request), None).map(arrival);
        }
        if !may_be && newer.is_none_or(|most| status.size > most) {
            return Ok(CopyArrival::Mismatch);
        }
        let opened = open_as_seen(directory, name, &status)?;
        let Some((content, opened)) = opened.filter(|(_, opened)| is_unchanged(opened, &status))
        else {
            return Ok(CopyArrival::Mismatch);
        };
        let from = Source {
            file: content.as_fd(),
            status: opened,
        };
        if may_be {
            match copier.make(&New::of(request), Some(&from)) {
                Err(Fault::Other) if newer.is_some() => {}
                made => return made.map(arrival),
            }
        }
        let as_it_is = New {
            path: &file.path,
            mtime: status.mtime,
            mode: file.mode,
            digest: None,
            sure: false,
            attributes: None,
        };
        copier.make(&as_it_is, Some(&from))?;
        Ok(CopyArrival::Mismatch)
    }
}

fn arrival(made: CopiedFile) -> CopyArrival {
    if made.finished {
        CopyArrival::Finished
    } else {
        CopyArrival::Arrived
    }
}

/// Return true if a file did not change between its examination and its opening.
fn is_unchanged(opened: &Status, seen: &Status) -> bool {
    let identity = |status: &Status| (status.size, status.mtime, status.ctime);
    identity(opened) == identity(seen)
}

/// Return what an error of reading means for the file.
fn unreadable(errno: Errno) -> CopyArrival {
    match errno {
        Errno::ACCESS | Errno::PERM => CopyArrival::Denied,
        Errno::IO => CopyArrival::Mismatch,
        _ => CopyArrival::Missing,
    }
}
