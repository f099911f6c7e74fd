//! Directories below a root, opened without following a symlink.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use crate::call::{self, Outcome};
use crate::error::{Error, Result};

/// The directory that a tree begins with.
#[derive(Debug)]
pub(crate) struct Root {
    handle: OwnedFd,
    /// Its file system.
    pub(crate) device: u64,
    /// Whether the kernel knows openat2, and lets us call it.
    quick: bool,
}

impl Root {
    pub(crate) fn open(path: &[u8]) -> Result<Self> {
        let handle = call::open_root(path).map_err(|errno| Error::new("open", path, errno))?;
        Self::of(handle, path)
    }

    /// The root that an open directory is; `path` is for the error.
    pub(crate) fn of(handle: OwnedFd, path: &[u8]) -> Result<Self> {
        Self::try_of(handle).map_err(|errno| Error::new("open", path, errno))
    }

    fn try_of(handle: OwnedFd) -> Outcome<Self> {
        let device = call::status(handle.as_fd())?.device;
        // PERM: old seccomp filters.
        let quick = !matches!(
            call::open_beneath(handle.as_fd(), b"."),
            Err(Errno::NOSYS | Errno::PERM)
        );
        Ok(Self {
            handle,
            device,
            quick,
        })
    }

    /// Opens the directory at `path`, components separated by slashes; empty: the root again.
    pub(crate) fn directory(&self, path: &[u8]) -> Outcome<OwnedFd> {
        if path.is_empty() {
            return call::open_here(self.handle.as_fd(), b".");
        }
        // The kernel's look-up would go elsewhere; as openat2 says of what leads out.
        if path
            .split(|byte| *byte == b'/')
            .any(|name| matches!(name, b"" | b"." | b".."))
        {
            return Err(Errno::XDEV);
        }
        if self.quick {
            call::open_beneath(self.handle.as_fd(), path)
        } else {
            walk(self.handle.as_fd(), path)
        }
    }
}

/// Component by component.
fn walk(root: BorrowedFd<'_>, path: &[u8]) -> Outcome<OwnedFd> {
    let mut here: Option<OwnedFd> = None;
    let mut rest = path;
    while let Some(slash) = rest.iter().position(|byte| *byte == b'/') {
        let (name, below) = rest.split_at(slash);
        here = Some(call::step(here.as_ref().map_or(root, AsFd::as_fd), name)?);
        rest = below.get(1..).unwrap_or_default();
    }
    call::open_here(here.as_ref().map_or(root, AsFd::as_fd), rest)
}
