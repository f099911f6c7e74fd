//! Content that a local file has already: in a tree, or staged for another file.
//!
//! Rule to keep: a source is believed without being read only if that was said of it, and it was
//! not changed since; a wrong one stages nothing.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicU64;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::content::{Copier, Fault, New, Source, Way};
use super::targets::Targets;
use crate::attributes::{Attributes, time_of};
use crate::call::{self, Time};
use crate::change;
use crate::error::{Error, Result};
use crate::publish::{LastFolder, Tree, split};
use crate::stage::Wanted;
use crate::stop::Stop;

/// A wanted file, and the one of the tree that may have its content.
#[derive(Debug)]
pub struct Reuse {
    /// The metadata of the file.
    pub wanted: Wanted,
    /// What it is to have, and what its source has if it becomes a link.
    pub attributes: Attributes,
    /// Where the source is in the tree.
    pub source: Vec<u8>,
    /// The time of the source; its size is that of the file.
    pub mtime: i64,
    /// The file may become a link if the inode has at most so many names.
    pub names: u64,
    /// Whether size and time of the source are enough.
    pub sure: bool,
    /// The name of a link among what is ready; None: it must not become one.
    pub key: Option<Vec<u8>>,
}

/// A wanted file, and a staged one that has its content.
#[derive(Debug)]
pub struct Staged {
    /// The metadata of the file.
    pub wanted: Wanted,
    /// Where the staged file is: below this open directory of this process.
    pub folder: u32,
    /// From there; no symlink is on the way.
    pub name: Vec<u8>,
    /// As for `Reuse`.
    pub key: Option<Vec<u8>>,
}

/// Where files are staged: open directories of this process, to which nobody else writes.
#[derive(Debug, Clone, Copy)]
pub struct Area<'a> {
    /// Copies go below it, under their paths; it is theirs alone.
    pub folder: u32,
    /// Links go into it, under their keys.
    pub ready: u32,
    /// So many threads hash a large file.
    pub threads: usize,
    /// Counts the bytes that were read.
    pub done: &'a AtomicU64,
}

/// What became of a row of files.
#[derive(Debug)]
pub struct Ways {
    /// How each was staged; None: it was not.
    pub ways: Vec<Option<Way>>,
    /// There is no room: at this file the row ended.
    pub failure: Option<Error>,
}

impl Tree {
    /// Stages each file whose source has its content.  `until`, in nanoseconds since the epoch: a
    /// source that was changed later is read.
    pub fn stage_copies(
        &mut self,
        items: &[Reuse],
        until: i64,
        area: Area<'_>,
        stop: &Stop,
    ) -> Result<Ways> {
        let until = time_of(until);
        let mut desk = Desk::new(area, stop)?;
        let path = |item: &Reuse| item.wanted.path.clone();
        let stage = |item: &Reuse| self.reuse(item, until, &mut desk);
        Ok(row(items, stop, path, stage))
    }

    fn reuse(
        &mut self,
        item: &Reuse,
        until: Time,
        desk: &mut Desk<'_>,
    ) -> std::result::Result<Way, Fault> {
        let found = self.status(&item.source)?.ok_or(Fault::Other)?;
        let is_it = found.kind == FileType::RegularFile
            && found.size == item.wanted.size
            && found.mtime == time_of(item.mtime);
        if !is_it {
            return Err(Fault::Other);
        }
        let (above, name) = split(&item.source);
        let file = call::open_file_at(self.folders.open(above)?.as_fd(), name)?;
        let status = call::status(file.as_fd())?;
        let sure = item.sure && is_before(status.ctime, until);
        let is_same = (status.device, status.inode) == (found.device, found.inode);
        if !is_same || !(sure || item.wanted.digest.is_some()) {
            return Err(Fault::Other);
        }
        let may_link = u64::from(found.links) <= item.names
            && item.attributes.are_of(&found)
            && item.attributes.time() == found.mtime;
        let from = Source {
            file: file.as_fd(),
            status,
        };
        let key = item.key.as_deref().filter(|_| may_link);
        desk.take(&item.wanted, &from, sure, key)
    }
}

/// Stages each file with the content of another one that is staged.
pub fn copy_twins(items: &[Staged], area: Area<'_>, stop: &Stop) -> Result<Ways> {
    let mut desk = Desk::new(area, stop)?;
    let mut last = LastFolder::default();
    let path = |item: &Staged| item.wanted.path.clone();
    let stage = |item: &Staged| {
        let file = call::open_file_at(last.open(item.folder)?, &item.name)?;
        let status = call::status(file.as_fd())?;
        if status.kind != FileType::RegularFile || status.size != item.wanted.size {
            return Err(Fault::Other);
        }
        let from = Source {
            file: file.as_fd(),
            status,
        };
        desk.take(&item.wanted, &from, true, item.key.as_deref())
    };
    Ok(row(items, stop, path, stage))
}

/// Where files are staged, opened.
struct Desk<'a> {
    copier: Copier<'a>,
    ready: OwnedFd,
}

impl<'a> Desk<'a> {
    fn new(area: Area<'a>, stop: &'a Stop) -> Result<Self> {
        let open = || {
            let targets = Targets::below(area.folder)?;
            Ok(Self {
                copier: Copier::new(targets, area.threads, area.done, stop),
                ready: call::reopen(area.ready)?,
            })
        };
        open().map_err(|errno| Error::new("open", b"", errno))
    }

    /// Stages `wanted`; as a link only with a `key`.
    fn take(
        &mut self,
        wanted: &Wanted,
        from: &Source<'_>,
        sure: bool,
        key: Option<&[u8]>,
    ) -> std::result::Result<Way, Fault> {
        if let Some(key) = key {
            if !sure && Some(self.copier.digest(from)?) != wanted.digest {
                return Err(Fault::Other);
            }
            // Not every file system, and not every file of other users, can be linked.  Its name
            // may have become another file's since it was opened.
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

/// One file after the other, until there is no room, or a stop.
fn row<T>(
    items: &[T],
    stop: &Stop,
    path: impl Fn(&T) -> Vec<u8>,
    mut stage: impl FnMut(&T) -> std::result::Result<Way, Fault>,
) -> Ways {
    let mut ways = vec![None; items.len()];
    for (way, item) in ways.iter_mut().zip(items) {
        if stop.is_set() {
            break;
        }
        match stage(item) {
            Ok(found) => *way = Some(found),
            Err(Fault::Target(errno)) if is_no_room(errno) => {
                let failure = Some(Error::new("copy", &path(item), errno));
                return Ways { ways, failure };
            }
            Err(_) => {} // it is transferred
        }
    }
    Ways {
        ways,
        failure: None,
    }
}

fn is_no_room(errno: Errno) -> bool {
    matches!(errno, Errno::NOSPC | Errno::DQUOT | Errno::ROFS)
}

fn is_before(one: Time, other: Time) -> bool {
    (one.seconds, one.nanoseconds) < (other.seconds, other.nanoseconds)
}
