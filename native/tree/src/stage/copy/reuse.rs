//! Reuses content of a local file: in a tree, or staged for another file.
//!
//! Rule to keep: a source is trusted without being read only if the caller says so, and if it
//! did not change since; a wrong one stages nothing.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use huai_format::path::split;
use huai_sys::attributes::{Attributes, time_of};
use huai_sys::call::{Status, Time};
use huai_sys::error::Result;
use huai_sys::regular::{open_as_seen, open_regular_at};
use huai_sys::stop::Stop;

use super::content::{Fault, Source, Way};
use super::rows::{Area, Stager, Ways, stage_all};
use crate::publish::Tree;
use crate::stage::verify::FileMetadata;

/// A wanted file, and a file of the tree that may have its content.
#[derive(Debug)]
pub struct Reuse {
    /// The metadata of the file.
    pub wanted: FileMetadata,
    /// The final attributes, which the source has if the file becomes a link.
    pub attributes: Attributes,
    /// The path of the source in the tree.
    pub source: Vec<u8>,
    /// The time of the source; its size is that of the file.
    pub mtime: i64,
    /// The most names of the inode if the file becomes a link.
    pub names: u64,
    /// True if size and time of the source are sufficient proof.
    pub sure: bool,
    /// The name of a link in the ready folder; `None` forbids a link.
    pub key: Option<Vec<u8>>,
}

/// A wanted file, and a staged file with its content.
#[derive(Debug)]
pub struct Twin {
    /// The metadata of the file.
    pub wanted: FileMetadata,
    /// An open directory of this process that has the staged file at or below it.
    pub folder: u32,
    /// The path from there, without symlinks.
    pub name: Vec<u8>,
    /// The name of a link, as for `Reuse`.
    pub key: Option<Vec<u8>>,
}

impl Tree {
    /// Stage each file whose source has its content.  A source that changed after `until`, in nanoseconds since the
    /// epoch, is read.  One that could not be staged has no way; ends early after a stop, or without space.
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
        let stage = |item: &Reuse, stager: &mut Stager<'_>| reuse(&tree, item, until, stager);
        stage_all(items, area, stop, path, stage)
    }

    /// Open the source of `item`; fails with `Other` unless it has the stated size and time.
    fn open_source(&mut self, item: &Reuse) -> std::result::Result<(OwnedFd, Status), Fault> {
        let status = self.status(&item.source)?.ok_or(Fault::Other)?;
        let is_it = status.size == item.wanted.size && status.mtime == time_of(item.mtime);
        if !is_it {
            return Err(Fault::Other);
        }
        let (above, name) = split(&item.source);
        let opened = open_as_seen(self.folders.open(above)?.as_fd(), name, &status)?;
        opened.ok_or(Fault::Other)
    }
}

/// Stage the content of the source: as a link if it has the final attributes and few names.  Fails with `Other` if
/// nothing can prove the content.
fn reuse(
    tree: &Mutex<&mut Tree>,
    item: &Reuse,
    until: Time,
    stager: &mut Stager<'_>,
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
    stager.stage(&item.wanted, &from, sure, key)
}

/// Stage each file with the content of another staged one, of which a link or clone is trusted; one that could not be
/// staged has no way.
pub fn copy_twins(items: &[Twin], area: Area<'_>, stop: &Stop) -> Result<Ways> {
    let path = |item: &Twin| item.wanted.path.clone();
    let stage = |item: &Twin, stager: &mut Stager<'_>| {
        let opened = open_regular_at(stager.last.open(item.folder)?, &item.name)?;
        let (file, status) = opened.ok_or(Fault::Other)?;
        if status.size != item.wanted.size {
            return Err(Fault::Other);
        }
        let from = Source {
            file: file.as_fd(),
            status,
        };
        stager.stage(&item.wanted, &from, true, item.key.as_deref())
    };
    stage_all(items, area, stop, path, stage)
}

fn is_before(one: Time, other: Time) -> bool {
    (one.seconds, one.nanoseconds) < (other.seconds, other.nanoseconds)
}
