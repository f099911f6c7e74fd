//! Content from a path of this machine that a content URL names.
//!
//! Whoever may write there may change it at any time: what is copied is proved by its digest, or by
//! a file that is the same before and after.  An opened file below the path was reached through
//! directories alone.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::sync::atomic::AtomicU64;

use huai_format::path::split;
use rustix::fs::FileType;
use rustix::io::Errno;

use super::content::{Copier, Fault, Made, New, Source};
use super::targets::Targets;
use crate::stage::verify::{Asked, fits};
use crate::sys::attributes::time_of;
use crate::sys::call::{self, Status};
use crate::sys::error::{Error, Result, is_shortage};
use crate::sys::handle::{LastDirectory, Root};
use crate::sys::regular::open_as_seen;
use crate::sys::stop::Stop;

/// What became of a file that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// It is here, with size, time and content of the metadata.
    Arrived,
    /// The same, with owner and mode: it can be published as it is.
    Finished,
    /// Nothing is there, or nothing that has content.
    Missing,
    /// Something else is there; what it holds is here if that was asked for.
    Mismatch,
    /// It may not be read.
    Denied,
    /// The call ended before.
    Unreached,
}

/// What became of a row of files.
#[derive(Debug)]
pub struct Copies {
    /// In the order of the files.
    pub arrivals: Vec<Arrival>,
    /// Why the row ended before its end: the file could not be written.
    pub failure: Option<Error>,
}

/// What a row is held to.
#[derive(Debug)]
pub struct Limits {
    /// Bytes a second; 0: as many as there are.
    pub rate: u64,
    /// Files that may be other ones than the metadata say, by number, and the bytes of such a one.
    pub newer: HashMap<usize, u64>,
}

/// The directory that content is copied from.
#[derive(Debug)]
pub struct Origin {
    root: Root,
}

impl Origin {
    /// The open directory `source` of this process.
    pub fn reopen(source: u32) -> Result<Self> {
        let root = call::reopen(source).and_then(Root::try_of);
        root.map(|root| Self { root })
            .map_err(|errno| Error::new("open", b"", errno))
    }

    /// Copies files to the same paths below `folder`, an open directory of this process to which
    /// nobody else writes.  `done` counts bytes.
    pub fn copy(
        &self,
        files: &[Asked],
        folder: u32,
        limits: &Limits,
        done: &AtomicU64,
        stop: &Stop,
    ) -> Result<Copies> {
        let targets = Targets::below(folder).map_err(|errno| Error::new("open", b"", errno))?;
        let mut copier = Copier::new(targets, 1, done, stop);
        copier.hold_to(limits.rate);
        let mut last = LastDirectory::default();
        let mut arrivals = vec![Arrival::Unreached; files.len()];
        let mut failure = None;
        for (number, (arrival, file)) in arrivals.iter_mut().zip(files).enumerate() {
            if stop.is_set() {
                break;
            }
            let newer = limits.newer.get(&number).copied();
            match self.copy_one(file, newer, &mut last, &mut copier) {
                Ok(found) => *arrival = found,
                Err(Fault::Stopped) => break,
                Err(Fault::Other) => *arrival = Arrival::Mismatch,
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

    fn copy_one<'a>(
        &self,
        asked: &'a Asked,
        newer: Option<u64>,
        last: &mut LastDirectory<'a>,
        copier: &mut Copier<'_>,
    ) -> std::result::Result<Arrival, Fault> {
        let file = &asked.wanted;
        let (above, name) = split(&file.path);
        let directory = last.open(&self.root, above)?;
        // Looked at first: to open a device may do something.
        let status = call::status_at(directory, name)?;
        match status.kind {
            FileType::RegularFile => {}
            FileType::Directory => return Ok(Arrival::Mismatch),
            _ => return Ok(Arrival::Missing),
        }
        let may_be = fits(&status, file);
        if may_be && file.size == 0 {
            return copier.make(&as_wanted(asked), None).map(arrival);
        }
        if !may_be && newer.is_none_or(|most| status.size > most) {
            return Ok(Arrival::Mismatch);
        }
        let opened = open_as_seen(directory, name, &status)?;
        let Some((content, opened)) = opened.filter(|(_, opened)| is_unchanged(opened, &status))
        else {
            return Ok(Arrival::Mismatch);
        };
        let from = Source {
            file: content.as_fd(),
            status: opened,
        };
        if may_be {
            match copier.make(&as_wanted(asked), Some(&from)) {
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
        Ok(Arrival::Mismatch)
    }
}

fn arrival(made: Made) -> Arrival {
    if made.finished {
        Arrival::Finished
    } else {
        Arrival::Arrived
    }
}

fn as_wanted(asked: &Asked) -> New<'_> {
    let file = &asked.wanted;
    New {
        path: &file.path,
        mtime: time_of(file.mtime),
        mode: file.mode,
        digest: file.digest,
        sure: false,
        attributes: asked.attributes,
    }
}

/// True if a file was not changed between the look at it and its opening.
fn is_unchanged(opened: &Status, seen: &Status) -> bool {
    let known = |status: &Status| (status.size, status.mtime, status.ctime);
    known(opened) == known(seen)
}

fn unreadable(errno: Errno) -> Arrival {
    match errno {
        Errno::ACCESS | Errno::PERM => Arrival::Denied,
        Errno::IO => Arrival::Mismatch,
        _ => Arrival::Missing,
    }
}
