//! Hardlinks, symlinks, attributes of what is there, and removing.

use std::os::fd::{AsFd, OwnedFd};

use huai_format::path::split;
use rustix::fs::FileType;
use rustix::io::Errno;

use super::files::File;
use super::row::{At, Done, Failure, Reason, Row, at, check, row};
use super::tree::{Tree, is_absence};
use crate::sys::attributes::{Attributes, Of};
use crate::sys::call::{self, Status};
use crate::sys::change;
use crate::sys::stop::Stop;

/// A symlink that is to be.
#[derive(Debug)]
pub struct Symlink {
    /// Where.
    pub path: Vec<u8>,
    /// Carried as it is, never followed.
    pub target: Vec<u8>,
    /// What it is to have; the mode says nothing.
    pub attributes: Attributes,
}

/// A hardlink that is to be.
#[derive(Debug)]
pub struct Link {
    /// With the attributes of the file it is a name of.
    pub file: File,
    /// Bytes.
    pub size: u64,
    /// Another name of that file.
    pub leader: Option<Vec<u8>>,
}

/// A file or symlink that is there, and what it is to have.
#[derive(Debug)]
pub enum Leaf {
    /// A regular file.
    File(File),
    /// A symlink.
    Symlink(File),
}

/// What is to go.
#[derive(Debug)]
pub struct Remove {
    /// Where.
    pub path: Vec<u8>,
    /// Whether an empty directory, or anything else.
    pub directory: bool,
}

impl Tree {
    /// Makes hardlinks, replacing leaves.  The leader has to be as stated: otherwise its content may
    /// be another.
    pub fn make_links(&mut self, items: &[Link], stop: &Stop) -> Row {
        row(items, stop, |item| self.link_one(item))
    }

    fn link_one(&mut self, item: &Link) -> Done {
        let path = &item.file.path;
        let leader = item
            .leader
            .as_ref()
            .ok_or_else(|| at(path, Reason::NoLeader))?;
        check(path)?;
        check(leader)?;
        let inode = self.open_leader(path, leader)?;
        let first = call::status(inode.as_fd()).at(path)?;
        let is_as_stated = first.size == item.size && item.file.attributes.are_of(&first);
        if !is_as_stated {
            return Err(at(path, Reason::LeaderDiffers(leader.clone())));
        }
        let present = self.status(path).at(path)?;
        if present.is_some_and(|present| is_same(&first, &present)) {
            return Ok(());
        }
        self.replace(path, |(directory, name)| {
            change::make_link_by_path(inode.as_fd(), directory, name)
        })
    }

    fn open_leader(&mut self, path: &[u8], leader: &[u8]) -> Result<OwnedFd, Failure> {
        let (above, name) = split(leader);
        let opened = self.folders.permitted(&[above], |folders| {
            call::open_inode(folders.open(above)?.as_fd(), name)
        });
        opened.map_err(|errno| {
            if is_absence(errno) {
                at(path, Reason::LeaderMissing(leader.to_vec()))
            } else {
                at(path, errno)
            }
        })
    }

    /// Makes symlinks, replacing leaves.
    pub fn make_symlinks(&mut self, items: &[Symlink], stop: &Stop) -> Row {
        row(items, stop, |item| {
            check(&item.path)?;
            self.symlink_one(item)
        })
    }

    pub(super) fn symlink_one(&mut self, item: &Symlink) -> Done {
        self.replace(&item.path, |(directory, name)| {
            change::make_symlink(directory, name, &item.target)?;
            let status = call::status_at(directory, name)?;
            item.attributes
                .set_of_symlink(Of::Name(directory, name), &status)
        })
    }

    /// Sets owner, mode and times of files and symlinks that are there.
    pub fn settle_leaves(&mut self, items: &[Leaf], stop: &Stop) -> Row {
        row(items, stop, |item| {
            let (Leaf::File(wanted) | Leaf::Symlink(wanted)) = item;
            let path = &wanted.path;
            check(path)?;
            let (above, name) = split(path);
            let opened = self.folders.permitted(&[above], |folders| {
                let directory = folders.open(above)?;
                call::status_at(directory.as_fd(), name).map(|status| (directory, status))
            });
            let (directory, status) = opened.at(path)?;
            let (attributes, of) = (&wanted.attributes, Of::Name(directory.as_fd(), name));
            match item {
                Leaf::File(_) if status.kind != FileType::RegularFile => {
                    Err(at(path, Reason::NotRegular))
                }
                Leaf::Symlink(_) if status.kind != FileType::Symlink => {
                    Err(at(path, Reason::NotSymlink))
                }
                Leaf::File(_) => attributes.set(of, &status).at(path),
                Leaf::Symlink(_) => attributes.set_of_symlink(of, &status).at(path),
            }
        })
    }

    /// Removes what exists: anything but a directory, or an empty one.
    pub fn remove_entries(&mut self, items: &[Remove], stop: &Stop) -> Row {
        row(items, stop, |item| {
            check(&item.path)?;
            if item.directory {
                self.remove_directory(&item.path)
            } else {
                self.remove_leaf(&item.path)
            }
        })
    }

    fn remove_leaf(&mut self, path: &[u8]) -> Done {
        let (above, name) = split(path);
        let removed = if self.former.keeps() {
            match self.take_away(path) {
                Err(failure)
                    if is_denied(&failure) && self.folders.make_writable(above).at(path)? =>
                {
                    self.take_away(path)
                }
                outcome => outcome,
            }
        } else {
            let removed = self.folders.permitted(&[above], |folders| {
                change::unlink(folders.open(above)?.as_fd(), name)
            });
            removed.at(path)
        };
        match removed {
            Err(failure) if is_absent(&failure) && self.status(path).at(path)?.is_none() => Ok(()),
            outcome => outcome,
        }
    }
}

fn is_denied(failure: &Failure) -> bool {
    failure.reason == Reason::Errno(Errno::ACCESS)
}

fn is_absent(failure: &Failure) -> bool {
    matches!(failure.reason, Reason::Errno(errno) if is_absence(errno))
}

fn is_same(one: &Status, other: &Status) -> bool {
    (one.device, one.inode) == (other.device, other.inode)
}
