//! Makes and removes directories, and sets their attributes.

use std::os::fd::AsFd;

use huai_format::path::split;
use huai_sys::attributes::{Attributes, Mode, Of};
use huai_sys::call::{self, Outcome};
use huai_sys::change;
use huai_sys::error::Errno;
use huai_sys::stop::Stop;

use super::row::{At, Done, FailureReason, RowResult, at, reject_reserved, row};
use super::tree::{Tree, is_absence};

pub(super) const OWNER_MAY_ALL: u32 = 0o700;

/// A directory to make or change.
#[derive(Debug)]
pub struct WantedDirectory {
    /// The path.
    pub path: Vec<u8>,
    /// The attributes; `None` for those that it gets or has.
    pub attributes: Option<Attributes>,
}

impl Tree {
    /// Make directories that do not exist, and set the owner and mode of those with attributes, with u+rwx added
    /// until `settle_directories`; an existing directory may keep its mode.
    pub fn make_directories(&mut self, items: &[WantedDirectory], stop: &Stop) -> RowResult {
        row(items, stop, |item| {
            reject_reserved(&item.path)?;
            let is_new = self.make(&item.path).at(&item.path)?;
            match &item.attributes {
                Some(wanted) => self
                    .prepare_directory(&item.path, wanted, is_new)
                    .at(&item.path),
                None => Ok(()),
            }
        })
    }

    /// Set the owner, and the mode with u+rwx added until `settle`; one that is not `is_new` may keep its mode.  A new
    /// one with a kept mode is noted: `settle` sets its mode too.
    fn prepare_directory(&mut self, path: &[u8], wanted: &Attributes, is_new: bool) -> Outcome<()> {
        let is_kept = matches!(wanted.mode, Mode::Kept(_));
        if is_new && is_kept {
            self.fresh.insert(path.to_vec());
        }
        let handle = self.folders.open(path)?;
        let (of, status) = (Of::Inode(handle.as_fd()), call::status(handle.as_fd())?);
        let chowned = wanted.set_owner(of, &status)?;
        if is_kept && !self.fresh.contains(path) {
            return Ok(());
        }
        let mut first = *wanted;
        first.mode = Mode::Exact(self.new_mode(wanted.mode) | OWNER_MAY_ALL);
        first.set_mode(of, &status, chowned)
    }

    /// Make a directory; false if the directory existed.  The one above may get u+rwx for it, until `restore_modes`.
    pub(super) fn make(&mut self, path: &[u8]) -> Outcome<bool> {
        let (above, name) = split(path);
        let outcome = self.folders.with_permission(&[above], |folders| {
            change::make_directory(folders.open(above)?.as_fd(), name)
        });
        match outcome {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) if self.is_directory(path)? => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    /// Set the final attributes of directories, including times; one without attributes is left
    /// alone.
    pub fn settle_directories(&mut self, items: &[WantedDirectory], stop: &Stop) -> RowResult {
        row(items, stop, |item| {
            reject_reserved(&item.path)?;
            match item.attributes {
                Some(wanted) => self.settle(&item.path, wanted).at(&item.path),
                None => Ok(()),
            }
        })
    }

    /// Set the final attributes; a kept mode, less the umask, only on a directory that this run made.  After an exact
    /// mode or that one, `restore_modes` no longer changes the directory.
    fn settle(&mut self, path: &[u8], mut wanted: Attributes) -> Outcome<()> {
        if self.fresh.contains(path) {
            wanted.mode = Mode::Exact(self.new_mode(wanted.mode));
        }
        let handle = self.folders.open(path)?;
        let status = call::status(handle.as_fd())?;
        wanted.set(Of::Inode(handle.as_fd()), &status)?;
        if matches!(wanted.mode, Mode::Exact(_)) {
            self.folders.settle_mode(path);
        }
        Ok(())
    }

    /// Remove an empty directory, if it exists; fails with `NotEmpty` if it has entries.
    pub(super) fn remove_directory(&mut self, path: &[u8]) -> Done {
        match self.rmdir(path) {
            Ok(()) => {}
            Err(Errno::NOTEMPTY | Errno::EXIST) => return Err(at(path, FailureReason::NotEmpty)),
            Err(errno) if is_absence(errno) && self.status(path).at(path)?.is_none() => {}
            Err(errno) => return Err(at(path, errno)),
        }
        self.folders.forget(path, None);
        Ok(())
    }

    /// Delete an empty directory, making the one above writable for that.
    pub(super) fn rmdir(&mut self, path: &[u8]) -> Outcome<()> {
        let (above, name) = split(path);
        self.folders.with_permission(&[above], |folders| {
            change::remove_directory(folders.open(above)?.as_fd(), name)
        })
    }
}
