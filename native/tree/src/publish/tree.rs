//! The tree that is worked in, and its directories.

use std::os::fd::{AsRawFd, RawFd};

use rustix::io::Errno;

use crate::call;
use crate::error::{Error, Result};
use crate::folders::Folders;

/// One tree, opened once.
#[derive(Debug)]
pub struct Tree {
    pub(super) folders: Folders,
}

impl Tree {
    /// The tree below the open directory `root` of this process, which the caller may close.
    /// Directories of the user `loosens` get u+rwx where they need it, until `restore_modes`.
    pub fn new(root: RawFd, loosens: Option<u32>) -> Result<Self> {
        call::open_again(root)
            .and_then(|root| Folders::new(root, loosens))
            .map(|folders| Self { folders })
            .map_err(|errno| Error::new("open", b"", errno))
    }

    /// The number of a handle (`O_PATH`) of a directory, valid during the next few calls.
    pub fn open(&mut self, path: &[u8]) -> Result<RawFd> {
        self.folders
            .open(path)
            .map(|handle| handle.as_raw_fd())
            .map_err(|errno: Errno| Error::new("open", path, errno))
    }

    /// Gives a directory u+rwx; false if this is not allowed, or it has them.
    pub fn make_writable(&mut self, path: &[u8]) -> Result<bool> {
        self.folders
            .make_writable(path)
            .map_err(|errno| Error::new("open", path, errno))
    }

    /// A directory has its final mode, which `restore_modes` must not change.
    pub fn settled(&mut self, path: &[u8]) {
        self.folders.settled(path);
    }

    /// Restores the modes of directories that got u+rwx; gives the paths where this failed.
    pub fn restore_modes(&mut self) -> Vec<Vec<u8>> {
        self.folders.restore_modes()
    }

    /// `old` was removed, or renamed to `new`, with everything below it.
    pub fn forget(&mut self, old: &[u8], new: Option<&[u8]>) {
        self.folders.forget(old, new);
    }

    /// Lets go of the handles that are kept, so that renames by others are seen.
    pub fn refresh(&mut self) {
        self.folders.refresh();
    }
}
