//! A tree that is changed, and its directories.

use std::collections::HashSet;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use huai_format::path::split;
use huai_plan::candidates::{Candidates, Renames};
use huai_sys::attributes::Mode;
use huai_sys::call::{self, FileType, Outcome, Status};
use huai_sys::change;
use huai_sys::error::{Errno, Error, Result};
use huai_sys::folders::Folders;
use huai_sys::stop::Stop;

use crate::survey::unhashed::{self, Hashing};
use crate::survey::{self, Numbers, Refused};

/// The mode bit of a directory whose group new entries get; new directories get the bit as well.
pub(super) const SET_GROUP: u32 = 0o2000;

/// The options of a tree that is changed.
#[derive(Debug, Clone, Copy)]
pub struct TreeOptions {
    /// The user whose directories get u+rwx where needed, until `restore_modes`.
    pub loosens: Option<u32>,
    /// The permission bits that new entries without a stated mode lack.
    pub umask: u32,
    /// True to keep the owners of entries that are moved one by one.
    pub owners: bool,
}

/// The place of former files.
#[derive(Debug, Default)]
pub(super) struct Former {
    /// The topmost directory; `None` to keep no files.
    pub(super) top: Option<Vec<u8>>,
    /// The directories that exist.
    pub(super) made: HashSet<Vec<u8>>,
}

impl Former {
    fn below(top: Vec<u8>) -> Self {
        Self {
            top: Some(top),
            made: HashSet::new(),
        }
    }

    pub(super) fn keeps(&self) -> bool {
        self.top.is_some()
    }
}

/// A tree that is open for changes.
#[derive(Debug)]
pub struct Tree {
    pub(crate) folders: Folders,
    pub(super) options: TreeOptions,
    /// The new directories with a kept mode: it is set once, less the umask.
    pub(super) fresh: HashSet<Vec<u8>>,
    /// The staging area.
    pub(super) area: Option<OwnedFd>,
    pub(super) former: Former,
}

impl Tree {
    /// Open the tree below the open directory `root` of this process, which the caller may close.
    pub fn new(root: u32, options: TreeOptions) -> Result<Self> {
        let folders = call::reopen(root).and_then(|root| Folders::new(root, options.loosens));
        Ok(Self {
            folders: folders.map_err(|errno| Error::new("open", b"", errno))?,
            options,
            fresh: HashSet::new(),
            area: None,
            former: Former::default(),
        })
    }

    /// Use the open directory `area` of this process for temporary names.  No other user may write to it;
    /// the caller may close it.  Must be called before hardlinks and symlinks are made, which else fail with `BADF`.
    pub fn stage_in(&mut self, area: u32) -> Result<()> {
        let area = call::reopen(area).map_err(|errno| Error::new("open", b"", errno))?;
        self.area = Some(area);
        Ok(())
    }

    /// Keep each leaf that is removed or replaced from now on, at the same path below
    /// `top`, which may be reserved for huai.
    pub fn keep_below(&mut self, top: Vec<u8>) {
        self.former = Former::below(top);
    }

    /// Return the number of a handle (`O_PATH`) of a directory, valid during the next few calls.
    pub fn open(&mut self, path: &[u8]) -> Result<RawFd> {
        self.folders
            .open(path)
            .map(|handle| handle.as_raw_fd())
            .map_err(|errno| Error::new("open", path, errno))
    }

    /// Give a directory u+rwx until `restore_modes`; false if this is not allowed, or it has them.
    pub fn make_writable(&mut self, path: &[u8]) -> Result<bool> {
        self.folders
            .make_writable(path)
            .map_err(|errno| Error::new("open", path, errno))
    }

    /// Examine all rows of `table` with an unknown state, at their paths before `renames`; ends at the first path
    /// that cannot be examined, and returns it; `None` if all could.  `CANCELED` after a stop.
    pub fn survey(
        &mut self,
        table: &mut Candidates,
        numbers: &Numbers,
        renames: &Renames,
        stop: &Stop,
    ) -> Result<Option<Refused>> {
        survey::survey(&mut self.folders, table, (numbers, renames), stop)
            .map_err(|errno| Error::new("look", b"", errno))
    }

    /// Hash each file of `table` whose content has to be read to be compared, at its path before `renames`; returns
    /// the error that ended it, if any; then no digest is set.
    pub fn hash(
        &mut self,
        table: &mut Candidates,
        renames: &Renames,
        hashing: Hashing<'_>,
        stop: &Stop,
    ) -> Result<Option<Error>> {
        unhashed::hash(&mut self.folders, table, renames, hashing, stop)
            .map_err(|errno| Error::new("hash", b"", errno))
    }

    /// Restore the modes of directories that got u+rwx; returns the paths where this failed.  After a stop, the next
    /// call restores the rest.
    pub fn restore_modes(&mut self, stop: &Stop) -> Vec<Vec<u8>> {
        self.folders.restore_modes(stop)
    }

    /// Close the cached handles, so that renames by other processes are seen.
    pub fn refresh(&mut self) {
        self.folders.refresh();
    }

    /// Write all changes of the tree's file system to disk.
    pub fn sync(&self) -> Result<()> {
        change::sync_file_system(self.folders.root())
            .map_err(|errno| Error::new("sync", b"", errno))
    }

    /// Write the names in the root and its attributes to disk.
    pub fn sync_root(&self) -> Result<()> {
        change::sync(self.folders.root()).map_err(|errno| Error::new("sync", b"", errno))
    }

    /// Return the status of `path`; `None` if it is missing, or an ancestor is not a directory.
    /// The directory above may get u+rwx for it, until `restore_modes`.
    pub(crate) fn status(&mut self, path: &[u8]) -> Outcome<Option<Status>> {
        let (above, name) = split(path);
        let outcome = self.folders.with_permission(&[above], |folders| {
            if name.is_empty() {
                return call::status(folders.root());
            }
            call::status_at(folders.open(above)?.as_fd(), name)
        });
        match outcome {
            Ok(status) => Ok(Some(status)),
            Err(errno) if is_absence(errno) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    pub(super) fn is_directory(&mut self, path: &[u8]) -> Outcome<bool> {
        let status = self.status(path)?;
        Ok(status.is_some_and(|status| status.kind == FileType::Directory))
    }

    /// Return the mode of a new entry: one that is kept is reduced by the umask.
    pub(super) fn new_mode(&self, mode: Mode) -> u32 {
        match mode {
            Mode::Exact(mode) => mode,
            Mode::Kept(mode) => mode & !self.options.umask,
        }
    }
}

/// Return true if an error means that an entry is missing, or an ancestor is not a directory.
pub(super) fn is_absence(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::NOTDIR)
}
