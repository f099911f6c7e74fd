//! The tree that is worked in, and its directories.

use std::collections::HashSet;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use huai_format::path::split;
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::candidates::Candidates;
use crate::candidates::survey::{self, Numbers, Refused, Renames};
use crate::candidates::unhashed::{self, Hashing};
use crate::sys::attributes::Mode;
use crate::sys::call::{self, Outcome, Status};
use crate::sys::change;
use crate::sys::error::{Error, Result};
use crate::sys::folders::Folders;
use crate::sys::stop::Stop;

/// How a tree is worked in.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The user whose directories get u+rwx where they need it, until `restore_modes`.
    pub loosens: Option<u32>,
    /// What modes of new entries lack that are not stated.
    pub umask: u32,
    /// Whether what is moved entry by entry keeps its owner.
    pub owners: bool,
}

/// Where former files go.
#[derive(Debug, Default)]
pub(super) struct Former {
    /// None: nothing is kept.
    pub(super) top: Option<Vec<u8>>,
    /// The directories that are there.
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

/// One tree, opened once.
#[derive(Debug)]
pub struct Tree {
    pub(crate) folders: Folders,
    pub(super) options: Options,
    /// Directories made here whose mode is kept: it is set once, less the umask.
    pub(super) fresh: HashSet<Vec<u8>>,
    /// The staging area.
    pub(super) area: Option<OwnedFd>,
    pub(super) former: Former,
}

impl Tree {
    /// The tree below the open directory `root` of this process, which the caller may close.
    pub fn new(root: u32, options: Options) -> Result<Self> {
        let folders = call::reopen(root).and_then(|root| Folders::new(root, options.loosens));
        Ok(Self {
            folders: folders.map_err(|errno| Error::new("open", b"", errno))?,
            options,
            fresh: HashSet::new(),
            area: None,
            former: Former::default(),
        })
    }

    /// Temporary names are made in the open directory `area` of this process, which nobody else
    /// may write to, and the caller may close.
    pub fn stage_in(&mut self, area: u32) -> Result<()> {
        let area = call::reopen(area).map_err(|errno| Error::new("open", b"", errno))?;
        self.area = Some(area);
        Ok(())
    }

    /// From now on leaves that are removed or replaced go to, or are linked to, the same path below
    /// `top`, which may be huai's own.
    pub fn keep_below(&mut self, top: Vec<u8>) {
        self.former = Former::below(top);
    }

    /// The number of a handle (`O_PATH`) of a directory, valid during the next few calls.
    pub fn open(&mut self, path: &[u8]) -> Result<RawFd> {
        self.folders
            .open(path)
            .map(|handle| handle.as_raw_fd())
            .map_err(|errno| Error::new("open", path, errno))
    }

    /// Gives a directory u+rwx; false if this is not allowed, or it has them.
    pub fn make_writable(&mut self, path: &[u8]) -> Result<bool> {
        self.folders
            .make_writable(path)
            .map_err(|errno| Error::new("open", path, errno))
    }

    /// Looks at all of `table` that nobody looked at yet, where it is before `renames`.
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

    /// Reads each file of `table` of which only the content can tell if it is the wanted one, where
    /// it is before `renames`; what ended it, if anything did.
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

    /// Restores the modes of directories that got u+rwx; gives the paths where this failed.
    pub fn restore_modes(&mut self, stop: &Stop) -> Vec<Vec<u8>> {
        self.folders.restore_modes(stop)
    }

    /// Lets go of the handles that are kept, so that renames by others are seen.
    pub fn refresh(&mut self) {
        self.folders.refresh();
    }

    /// Writes all changes to disk.
    pub fn sync(&self) -> Result<()> {
        change::sync_file_system(self.folders.root())
            .map_err(|errno| Error::new("sync", b"", errno))
    }

    /// Writes the names in the root and its attributes to disk.
    pub fn sync_root(&self) -> Result<()> {
        change::sync(self.folders.root()).map_err(|errno| Error::new("sync", b"", errno))
    }

    /// What stands at `path`; None: nothing, or a path above is no directory.
    pub(crate) fn status(&mut self, path: &[u8]) -> Outcome<Option<Status>> {
        let (above, name) = split(path);
        let found = self.folders.permitted(&[above], |folders| {
            if name.is_empty() {
                return call::status(folders.root());
            }
            call::status_at(folders.open(above)?.as_fd(), name)
        });
        match found {
            Ok(status) => Ok(Some(status)),
            Err(errno) if is_absence(errno) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    pub(super) fn is_directory(&mut self, path: &[u8]) -> Outcome<bool> {
        let status = self.status(path)?;
        Ok(status.is_some_and(|status| status.kind == FileType::Directory))
    }

    /// The mode of what is made anew.
    pub(super) fn anew(&self, mode: Mode) -> u32 {
        match mode {
            Mode::Exact(mode) => mode,
            Mode::Kept(mode) => mode & !self.options.umask,
        }
    }
}

/// Whether nothing stands there, or a path above is no directory.
pub(super) fn is_absence(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::NOTDIR)
}
