//! Directories below a root, opened without following a symlink.
//!
//! Rule to keep: a path that a caller hands in is looked up below the root or not at all.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use super::call::{self, Outcome, Status, TO_PASS, TO_READ};
use super::error::{Error, Result};

/// The kernel takes no longer paths at once.
const LONG: usize = 4096;

/// The directory that a tree begins with.
#[derive(Debug)]
pub(crate) struct Root {
    handle: OwnedFd,
    /// Its file system.
    pub(crate) device: u64,
    mount: u64,
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

    pub(crate) fn try_of(handle: OwnedFd) -> Outcome<Self> {
        let Status { device, mount, .. } = call::status(handle.as_fd())?;
        // PERM: old seccomp filters.
        let quick = !matches!(
            call::open_beneath(handle.as_fd(), b".", TO_READ),
            Err(Errno::NOSYS | Errno::PERM)
        );
        Ok(Self {
            handle,
            device,
            mount,
            quick,
        })
    }

    /// Opens the directory at `path`, components separated by slashes; empty: the root again.
    pub(crate) fn directory(&self, path: &[u8]) -> Outcome<OwnedFd> {
        if path.is_empty() {
            return call::open_here(self.handle.as_fd(), b".");
        }
        check(path)?;
        if self.quick && path.len() < LONG {
            call::open_beneath(self.handle(), path, TO_READ)
        } else {
            walk(self.handle(), path)
        }
    }

    /// Opens the directory at `path`, which is not empty, to go further down; None: only component
    /// by component.
    pub(crate) fn pass(&self, path: &[u8]) -> Option<Outcome<OwnedFd>> {
        if let Err(errno) = check(path) {
            return Some(Err(errno));
        }
        self.quick
            .then(|| call::open_beneath(self.handle(), path, TO_PASS))
    }

    /// Opens the directory at `path` as `pass` does; `XDEV`: a mount is on the way.
    pub(crate) fn pass_within(&self, path: &[u8]) -> Option<Outcome<OwnedFd>> {
        if let Err(errno) = check(path) {
            return Some(Err(errno));
        }
        self.quick.then(|| call::pass_within(self.handle(), path))
    }

    /// True if a directory is on the file system of the root, and not in a mount below it.
    pub(crate) fn is_within(&self, directory: &Status) -> bool {
        (directory.device, directory.mount) == (self.device, self.mount)
    }

    /// Opens the directory at `path` to go further down; empty: the root again.
    pub(crate) fn enter(&self, path: &[u8]) -> Outcome<OwnedFd> {
        if !path.is_empty() {
            if let Some(outcome) = self.pass(path).filter(|it| !is_too_long(it)) {
                return outcome;
            }
        }
        let top = call::step(self.handle(), b".")?;
        let names = path.split(|byte| *byte == b'/');
        let mut names = names.filter(|name| !name.is_empty());
        names.try_fold(top, |here, name| call::step(here.as_fd(), name))
    }

    /// The root once more.
    pub(crate) fn again(&self) -> Outcome<OwnedFd> {
        call::open_here(self.handle(), b".")
    }

    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// The directory that was opened last: nearly always that of the next file as well.
#[derive(Debug, Default)]
pub(crate) struct LastDirectory<'a>(Option<(&'a [u8], OwnedFd)>);

impl<'a> LastDirectory<'a> {
    /// Opens the directory at `path` below `root` to go further down; empty: the root.
    pub(crate) fn open(&mut self, root: &Root, path: &'a [u8]) -> Outcome<BorrowedFd<'_>> {
        let known = self.0.take().filter(|(known, _)| *known == path);
        let found = match known {
            Some(known) => known,
            None => (path, root.enter(path)?),
        };
        Ok(self.0.insert(found).1.as_fd())
    }
}

/// Whether the kernel takes a path only piece by piece.
fn is_too_long(outcome: &Outcome<OwnedFd>) -> bool {
    matches!(outcome, Err(Errno::NAMETOOLONG))
}

/// The kernel's look-up of such a path would go elsewhere; as openat2 says of what leads out.
fn check(path: &[u8]) -> Outcome<()> {
    let leads_out = |name: &[u8]| matches!(name, b"" | b"." | b"..");
    if path.split(|byte| *byte == b'/').any(leads_out) {
        return Err(Errno::XDEV);
    }
    Ok(())
}

/// Component by component.
fn walk(root: BorrowedFd<'_>, path: &[u8]) -> Outcome<OwnedFd> {
    let mut here: Option<OwnedFd> = None;
    let mut rest = path;
    while let Some(slash) = rest.iter().position(|byte| *byte == b'/') {
        let (name, below) = rest.split_at(slash);
        here = Some(call::step(here.as_ref().map_or(root, AsFd::as_fd), name)?);
        rest = &below[1..];
    }
    call::open_here(here.as_ref().map_or(root, AsFd::as_fd), rest)
}
