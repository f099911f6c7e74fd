//! Content that a local file has already: in a tree, or staged for another file.
//!
//! Rule to keep: a source is believed without being read only if that was said of it, and it was
//! not changed since; a wrong one stages nothing.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use huai_format::path::split;

use super::content::{Fault, Source, Way};
use super::rows::{Area, Desk, Ways, rows};
use crate::publish::Tree;
use crate::stage::verify::Wanted;
use crate::sys::attributes::{Attributes, time_of};
use crate::sys::call::{Status, Time};
use crate::sys::error::Result;
use crate::sys::regular::{open_as_seen, open_regular_at};
use crate::sys::stop::Stop;

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
        let tree = Mutex::new(self);
        let path = |item: &Reuse| item.wanted.path.clone();
        let stage = |item: &Reuse, desk: &mut Desk<'_>| reuse(&tree, item, until, desk);
        rows(items, area, stop, path, stage)
    }

    /// What stands at the source of `item`, opened, if it may be the one that is meant.
    fn open_source(&mut self, item: &Reuse) -> std::result::Result<(OwnedFd, Status), Fault> {
        let found = self.status(&item.source)?.ok_or(Fault::Other)?;
        let is_it = found.size == item.wanted.size && found.mtime == time_of(item.mtime);
        if !is_it {
            return Err(Fault::Other);
        }
        let (above, name) = split(&item.source);
        let opened = open_as_seen(self.folders.open(above)?.as_fd(), name, &found)?;
        opened.ok_or(Fault::Other)
    }
}

fn reuse(
    tree: &Mutex<&mut Tree>,
    item: &Reuse,
    until: Time,
    desk: &mut Desk<'_>,
) -> std::result::Result<Way, Fault> {
    let mut looked_in = tree.lock().unwrap_or_else(PoisonError::into_inner);
    let (file, status) = looked_in.open_source(item)?;
    drop(looked_in);
    let sure = item.sure && is_before(status.ctime, until);
    if !(sure || item.wanted.digest.is_some()) {
        return Err(Fault::Other);
    }
    let may_link = u64::from(status.links) <= item.names
        && item.attributes.are_of(&status)
        && item.attributes.time() == status.mtime;
    let from = Source {
        file: file.as_fd(),
        status,
    };
    let key = item.key.as_deref().filter(|_| may_link);
    desk.take(&item.wanted, &from, sure, key)
}

/// Stages each file with the content of another one that is staged.
pub fn copy_twins(items: &[Staged], area: Area<'_>, stop: &Stop) -> Result<Ways> {
    let path = |item: &Staged| item.wanted.path.clone();
    let stage = |item: &Staged, desk: &mut Desk<'_>| {
        let opened = open_regular_at(desk.last.open(item.folder)?, &item.name)?;
        let (file, status) = opened.ok_or(Fault::Other)?;
        if status.size != item.wanted.size {
            return Err(Fault::Other);
        }
        let from = Source {
            file: file.as_fd(),
            status,
        };
        desk.take(&item.wanted, &from, true, item.key.as_deref())
    };
    rows(items, area, stop, path, stage)
}

fn is_before(one: Time, other: Time) -> bool {
    (one.seconds, one.nanoseconds) < (other.seconds, other.nanoseconds)
}
