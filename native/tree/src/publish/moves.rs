//! Moves directories.

use std::os::fd::AsFd;

use huai_format::path::{join, split};
use huai_sys::attributes::{Attributes, Mode, Of};
use huai_sys::call::{self, FileType, Outcome, Status};
use huai_sys::change;
use huai_sys::error::{Errno, Error, Result};
use huai_sys::listing::Names;
use huai_sys::stop::Stop;

use super::leaves::Symlink;
use super::row::{At, Done, FailureReason, RowResult, at, reject_reserved, row};
use super::tree::Tree;
use crate::walk::line;

/// A directory to rename, with everything below it, to a free path.
#[derive(Debug)]
pub struct DirectoryMove {
    /// The present path.
    pub old: Vec<u8>,
    /// The new path.
    pub new: Vec<u8>,
    /// The symlink that replaces `old` at the same moment.
    pub forward: Option<Symlink>,
}

impl Tree {
    /// Move directories, each with everything below it, to free paths; a forward is put at the old
    /// path.  Fails if the old path is not a directory, or the new one is taken.
    pub fn move_directories(&mut self, items: &[DirectoryMove], stop: &Stop) -> RowResult {
        row(items, stop, |item| self.move_one(item))
    }

    /// Move a directory: by one rename, or entry by entry on an overlay; then put its forward in place, for which
    /// nothing may be at the new path before.
    fn move_one(&mut self, item: &DirectoryMove) -> Done {
        let (old, new) = (&item.old, &item.new);
        reject_reserved(new)?;
        reject_reserved(old)?;
        if !self.is_directory(old).at(new)? {
            return Err(at(old, FailureReason::NoDirectory));
        }
        if let Some(forward) = &item.forward {
            if self.status(new).at(new)?.is_some() {
                return Err(at(new, FailureReason::Occupied));
            }
            self.put_symlink(forward, new)?;
        }
        let renamed = self.rename_directory(item);
        if renamed.is_err() && item.forward.is_some() {
            self.remove_symlink(new).at(new)?;
        }
        match renamed {
            Err(Errno::XDEV) if self.is_one_file_system(old, new).at(new)? => {
                // An overlay cannot rename a directory of a lower layer.
                self.move_by_entry(old, new).at(new)?;
            }
            outcome => outcome.at(new)?,
        }
        self.folders.forget(old, Some(new));
        match &item.forward {
            Some(forward) if self.status(old).at(old)?.is_none() => self.put_symlink(forward, old),
            _ => Ok(()),
        }
    }

    /// Make the symlink at `path` in place of its own, replacing a leaf.
    fn put_symlink(&mut self, symlink: &Symlink, path: &[u8]) -> Done {
        self.make_symlink(&Symlink {
            path: path.to_vec(),
            target: symlink.target.clone(),
            attributes: symlink.attributes,
        })
    }

    /// Remove the symlink at `path`; anything else there stays.
    fn remove_symlink(&mut self, path: &[u8]) -> Outcome<()> {
        let (above, name) = split(path);
        match self.status(path)? {
            Some(status) if status.kind == FileType::Symlink => {
                change::unlink(self.folders.open(above)?.as_fd(), name)
            }
            _ => Ok(()),
        }
    }

    /// Return true if the directory at `old` is on the file system of the parent of `new`.
    fn is_one_file_system(&mut self, old: &[u8], new: &[u8]) -> Outcome<bool> {
        let old = call::status(self.folders.open(old)?.as_fd())?;
        let new = call::status(self.folders.open(split(new).0)?.as_fd())?;
        Ok(old.device == new.device)
    }

    /// Rename; with a forward, which is at the new path, exchange the two, or else remove that one first.
    fn rename_directory(&mut self, item: &DirectoryMove) -> Outcome<()> {
        let ((old_above, old), (new_above, new)) = (split(&item.old), split(&item.new));
        // The moved directory has to be writable too, because its ".." changes.
        let writable = [old_above, new_above, &item.old];
        self.folders.with_permission(&writable, |folders| {
            let (source, target) = (folders.open(old_above)?, folders.open(new_above)?);
            let (from, to) = ((source.as_fd(), old), (target.as_fd(), new));
            if item.forward.is_some() {
                match change::exchange(from, to) {
                    Err(errno) if change::is_unsupported(errno) => {}
                    outcome => return outcome,
                }
                match change::unlink(to.0, to.1) {
                    Ok(()) | Err(Errno::NOENT) => {}
                    outcome => return outcome,
                }
            }
            change::rename_to_nothing(from, to)
        })
    }

    /// Move a directory that the kernel cannot rename: make it again, and rename its leaves.
    /// An interruption leaves entries in both places.
    fn move_by_entry(&mut self, old: &[u8], new: &[u8]) -> Outcome<()> {
        let mut pending = vec![(old.to_vec(), new.to_vec())];
        let mut done = Vec::new();
        while let Some((source, target)) = pending.pop() {
            let status = call::status(self.folders.open(&source)?.as_fd())?;
            self.make_new(&target)?;
            for (name, is_directory) in self.listing(&source)? {
                if is_directory {
                    pending.push((join(&source, &name), join(&target, &name)));
                } else {
                    self.rename_leaf(&source, &target, &name)?;
                }
            }
            done.push((source, target, status));
        }
        for (source, target, status) in done.iter().rev() {
            self.copy_attributes(target, status)?;
            self.rmdir(source)?;
            self.folders.forget(source, Some(target));
        }
        Ok(())
    }

    /// Make a directory where nothing is.
    fn make_new(&mut self, path: &[u8]) -> Outcome<()> {
        let (above, name) = split(path);
        self.folders.with_permission(&[above], |folders| {
            change::make_directory(folders.open(above)?.as_fd(), name)
        })
    }

    /// Rename a leaf into another directory, where its name must be free.
    fn rename_leaf(&mut self, source: &[u8], target: &[u8], name: &[u8]) -> Outcome<()> {
        self.folders.with_permission(&[source], |folders| {
            let (from, to) = (folders.open(source)?, folders.open(target)?);
            change::rename_to_nothing((from.as_fd(), name), (to.as_fd(), name))
        })
    }

    /// Return the names in a directory, each with true for a directory.
    fn listing(&mut self, path: &[u8]) -> Outcome<Vec<(Vec<u8>, bool)>> {
        let mut names = Names::default();
        let directory = self.folders.with_permission(&[path], |folders| {
            let directory = call::open_for_reading(folders.open(path)?.as_fd(), b".")?;
            names.read(directory.as_fd(), |_, _| true)?;
            Ok(directory)
        })?;
        names
            .iter()
            .map(|(name, kind)| {
                let kind = match kind {
                    FileType::Unknown => call::status_at(directory.as_fd(), name)?.kind,
                    known => known,
                };
                Ok((name.to_bytes().to_vec(), kind == FileType::Directory))
            })
            .collect()
    }

    /// Set the attributes in `status` on the directory at `path`; owners only if they are kept.
    fn copy_attributes(&mut self, path: &[u8], status: &Status) -> Outcome<()> {
        let handle = self.folders.open(path)?;
        let now = call::status(handle.as_fd())?;
        let owner = |id: u32| self.options.owners.then_some(id);
        let attributes = Attributes {
            user: owner(status.user),
            group: owner(status.group),
            mode: Mode::Exact(status.mode),
            mtime: line::nearest_nanoseconds(status.mtime),
        };
        attributes.set(Of::Inode(handle.as_fd()), &now)
    }
}

/// Rename within the directory that this process has open as `folder`; an error (`EXIST`) if `new`
/// exists.  Returns false, and does nothing, if the file system does not support such a rename.
pub fn rename_noreplace(folder: u32, old: &[u8], new: &[u8]) -> Result<bool> {
    let renamed = call::reopen(folder).and_then(|folder| {
        let folder = folder.as_fd();
        change::rename_noreplace((folder, old), (folder, new))
    });
    match renamed {
        Ok(()) => Ok(true),
        Err(errno) if change::is_unsupported(errno) => Ok(false),
        Err(errno) => Err(Error::new("rename", old, errno)),
    }
}
