//! Makes hardlinks and symlinks, sets attributes of leaves, and removes entries.

use std::os::fd::{AsFd, OwnedFd};

use huai_format::path::split;
use huai_sys::attributes::{Attributes, Of};
use huai_sys::call::{self, FileType, Status};
use huai_sys::change;
use huai_sys::error::Errno;
use huai_sys::stop::Stop;

use super::files::PublishedFile;
use super::row::{At, Done, FailureReason, OperationFailure, RowResult, at, reject_reserved, row};
use super::tree::{Tree, is_absence};

/// A symlink to make.
#[derive(Debug)]
pub struct Symlink {
    /// The path.
    pub path: Vec<u8>,
    /// The target, never followed.
    pub target: Vec<u8>,
    /// The attributes; the mode is ignored.
    pub attributes: Attributes,
}

/// A hardlink to make.
#[derive(Debug)]
pub struct Link {
    /// The path, and the attributes of the linked file.
    pub file: PublishedFile,
    /// The size in bytes.
    pub size: u64,
    /// Another name of that file.
    pub leader: Option<Vec<u8>>,
}

/// An existing file or symlink, and its new attributes.
#[derive(Debug)]
pub enum Leaf {
    /// A regular file.
    File(PublishedFile),
    /// A symlink.
    Symlink(PublishedFile),
}

/// An entry to remove.
#[derive(Debug)]
pub struct Remove {
    /// The path.
    pub path: Vec<u8>,
    /// True for an empty directory, false for anything else.
    pub directory: bool,
}

impl Tree {
    /// Make hardlinks, replacing leaves.  The leader must be as stated: otherwise its content may
    /// differ.
    pub fn make_links(&mut self, items: &[Link], stop: &Stop) -> RowResult {
        row(items, stop, |item| self.make_link(item))
    }

    /// Make the path a name of its leader, replacing a leaf; does nothing if it is a name of the
    /// leader already.  Fails unless the leader has the stated size and attributes.
    fn make_link(&mut self, item: &Link) -> Done {
        let path = &item.file.path;
        let leader = item
            .leader
            .as_ref()
            .ok_or_else(|| at(path, FailureReason::NoLeader))?;
        reject_reserved(path)?;
        reject_reserved(leader)?;
        let inode = self.open_leader(path, leader)?;
        let first = call::status(inode.as_fd()).at(path)?;
        let is_as_stated = first.size == item.size && item.file.attributes.are_of(&first);
        if !is_as_stated {
            return Err(at(path, FailureReason::LeaderDiffers(leader.clone())));
        }
        // A new name is complete at once; only another entry has to be replaced by a rename.
        let (above, name) = split(path);
        let linked = self.folders.with_permission(&[above], |folders| {
            change::make_link_by_path(inode.as_fd(), folders.open(above)?.as_fd(), name)
        });
        if linked != Err(Errno::EXIST) {
            return linked.at(path);
        }
        let present = self.status(path).at(path)?;
        if present.is_some_and(|present| is_same(&first, &present)) {
            return Ok(());
        }
        self.make_and_publish(path, |(directory, name)| {
            change::make_link_by_path(inode.as_fd(), directory, name)
        })
    }

    /// Open the leader of the hardlink to make at `path`, which is for the error; `LeaderMissing` without it.
    fn open_leader(&mut self, path: &[u8], leader: &[u8]) -> Result<OwnedFd, OperationFailure> {
        let (above, name) = split(leader);
        let opened = self.folders.with_permission(&[above], |folders| {
            call::open_inode(folders.open(above)?.as_fd(), name)
        });
        opened.map_err(|errno| {
            if is_absence(errno) {
                at(path, FailureReason::LeaderMissing(leader.to_vec()))
            } else {
                at(path, errno)
            }
        })
    }

    /// Make symlinks, replacing leaves.
    pub fn make_symlinks(&mut self, items: &[Symlink], stop: &Stop) -> RowResult {
        row(items, stop, |item| {
            reject_reserved(&item.path)?;
            self.make_symlink(item)
        })
    }

    /// Make a symlink with its attributes, and rename it over its path.
    pub(super) fn make_symlink(&mut self, item: &Symlink) -> Done {
        self.make_and_publish(&item.path, |(directory, name)| {
            change::make_symlink(directory, name, &item.target)?;
            let status = call::status_at(directory, name)?;
            item.attributes
                .set_of_symlink(Of::Name(directory, name), &status)
        })
    }

    /// Set owner, mode and times of existing files and symlinks; fails for a path with another
    /// type.
    pub fn settle_leaves(&mut self, items: &[Leaf], stop: &Stop) -> RowResult {
        row(items, stop, |item| {
            let (Leaf::File(wanted) | Leaf::Symlink(wanted)) = item;
            let path = &wanted.path;
            reject_reserved(path)?;
            let (above, name) = split(path);
            let opened = self.folders.with_permission(&[above], |folders| {
                let directory = folders.open(above)?;
                call::status_at(directory.as_fd(), name).map(|status| (directory, status))
            });
            let (directory, status) = opened.at(path)?;
            let (attributes, of) = (&wanted.attributes, Of::Name(directory.as_fd(), name));
            match item {
                Leaf::File(_) if status.kind != FileType::RegularFile => {
                    Err(at(path, FailureReason::NotRegular))
                }
                Leaf::Symlink(_) if status.kind != FileType::Symlink => {
                    Err(at(path, FailureReason::NotSymlink))
                }
                Leaf::File(_) => attributes.set(of, &status).at(path),
                Leaf::Symlink(_) => attributes.set_of_symlink(of, &status).at(path),
            }
        })
    }

    /// Remove entries, which may be missing: empty directories, and leaves, which are moved to the
    /// kept files after `keep_below`.
    pub fn remove_entries(&mut self, items: &[Remove], stop: &Stop) -> RowResult {
        row(items, stop, |item| {
            reject_reserved(&item.path)?;
            if item.directory {
                self.remove_directory(&item.path)
            } else {
                self.remove_leaf(&item.path)
            }
        })
    }

    /// Remove a leaf, or move it to its place among the kept files; it may be missing.
    fn remove_leaf(&mut self, path: &[u8]) -> Done {
        let (above, name) = split(path);
        let removed = if self.former.keeps() {
            match self.move_to_kept(path) {
                Err(failure)
                    if is_denied(&failure) && self.folders.make_writable(above).at(path)? =>
                {
                    self.move_to_kept(path)
                }
                outcome => outcome,
            }
        } else {
            let removed = self.folders.with_permission(&[above], |folders| {
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

fn is_denied(failure: &OperationFailure) -> bool {
    failure.reason == FailureReason::Errno(Errno::ACCESS)
}

fn is_absent(failure: &OperationFailure) -> bool {
    matches!(failure.reason, FailureReason::Errno(errno) if is_absence(errno))
}

fn is_same(one: &Status, other: &Status) -> bool {
    (one.device, one.inode) == (other.device, other.inode)
}
