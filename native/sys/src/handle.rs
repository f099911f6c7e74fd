//! Opens directories below a root without following symlinks.
//!
//! Rule to keep: a caller's path is looked up below the root or not at all.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use super::call::{self, FOR_LOOKUPS, FOR_READING, Outcome, Status};
use super::error::{Error, Result};

/// The length from which the kernel refuses a path.
const LONG: usize = 4096;

/// The root of a tree.
#[derive(Debug)]
pub struct Root {
    handle: OwnedFd,
    /// The device number of its file system.
    pub device: u64,
    mount: u64,
    /// True if the kernel supports openat2 and allows it.
    quick: bool,
}

impl Root {
    /// Open the directory at `path`, which may be a symlink.
    pub fn open(path: &[u8]) -> Result<Self> {
        let handle = call::open_root(path).map_err(|errno| Error::new("open", path, errno))?;
        Self::of(handle, path)
    }

    /// Make a root from an open directory, which is not checked to be one; `path` is only for errors.
    pub fn of(handle: OwnedFd, path: &[u8]) -> Result<Self> {
        Self::try_of(handle).map_err(|errno| Error::new("open", path, errno))
    }

    /// Make a root of an open directory.
    pub fn try_of(handle: OwnedFd) -> Outcome<Self> {
        let Status { device, mount, .. } = call::status(handle.as_fd())?;
        // PERM: old seccomp filters.
        let quick = !matches!(
            call::open_beneath(handle.as_fd(), b".", FOR_READING),
            Err(Errno::NOSYS | Errno::PERM)
        );
        Ok(Self {
            handle,
            device,
            mount,
            quick,
        })
    }

    /// Open the directory at `path` for reading; empty for the root.  `XDEV` for a path that leads
    /// out.
    pub fn directory(&self, path: &[u8]) -> Outcome<OwnedFd> {
        if path.is_empty() {
            return call::open_for_reading(self.handle.as_fd(), b".");
        }
        check(path)?;
        if self.quick && path.len() < LONG {
            call::open_beneath(self.handle(), path, FOR_READING)
        } else {
            walk(self.handle(), path)
        }
    }

    /// Open the directory at `path`, which is not empty, for lookups; `None` if it has to be opened
    /// component by component.
    pub fn open_at_once(&self, path: &[u8]) -> Option<Outcome<OwnedFd>> {
        if let Err(errno) = check(path) {
            return Some(Err(errno));
        }
        self.quick
            .then(|| call::open_beneath(self.handle(), path, FOR_LOOKUPS))
    }

    /// Open the directory at `path` as `open_at_once` does; `XDEV` means a mount on the way.  `None` if
    /// the kernel lacks the call.
    pub fn open_at_once_within(&self, path: &[u8]) -> Option<Outcome<OwnedFd>> {
        if let Err(errno) = check(path) {
            return Some(Err(errno));
        }
        self.quick.then(|| call::open_within(self.handle(), path))
    }

    /// Return true if a directory is on the file system of the root, and not in a mount below it.
    pub fn is_within(&self, directory: &Status) -> bool {
        (directory.device, directory.mount) == (self.device, self.mount)
    }

    /// Open the directory at `path` for lookups; empty for the root.
    pub fn enter(&self, path: &[u8]) -> Outcome<OwnedFd> {
        if !path.is_empty() {
            if let Some(outcome) = self.open_at_once(path).filter(|it| !is_too_long(it)) {
                return outcome;
            }
        }
        let top = call::open_for_lookups(self.handle(), b".")?;
        let names = path.split(|byte| *byte == b'/');
        let mut names = names.filter(|name| !name.is_empty());
        names.try_fold(top, |here, name| call::open_for_lookups(here.as_fd(), name))
    }

    /// Open the root again.
    pub fn reopen(&self) -> Outcome<OwnedFd> {
        call::open_for_reading(self.handle(), b".")
    }

    /// Return the handle.
    pub fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// The last directory, which is nearly always that of the next file as well.
#[derive(Debug, Default)]
pub struct LastDirectory<'a>(Option<(&'a [u8], OwnedFd)>);

impl<'a> LastDirectory<'a> {
    /// Open the directory at `path` below `root` for lookups, and keep it; empty for the root.
    pub fn open(&mut self, root: &Root, path: &'a [u8]) -> Outcome<BorrowedFd<'_>> {
        let last = self.0.take().filter(|(last, _)| *last == path);
        let handle = match last {
            Some(last) => last,
            None => (path, root.enter(path)?),
        };
        Ok(self.0.insert(handle).1.as_fd())
    }
}

/// Return true if the kernel refuses a path as too long.
fn is_too_long(outcome: &Outcome<OwnedFd>) -> bool {
    matches!(outcome, Err(Errno::NAMETOOLONG))
}

/// Refuse a path that the kernel would resolve elsewhere, with the error of openat2.
fn check(path: &[u8]) -> Outcome<()> {
    let leads_out = |name: &[u8]| matches!(name, b"" | b"." | b"..");
    if path.split(|byte| *byte == b'/').any(leads_out) {
        return Err(Errno::XDEV);
    }
    Ok(())
}

/// Open a directory for reading, component by component.
fn walk(root: BorrowedFd<'_>, path: &[u8]) -> Outcome<OwnedFd> {
    let mut opened: Option<OwnedFd> = None;
    let mut rest = path;
    while let Some(slash) = rest.iter().position(|byte| *byte == b'/') {
        let (name, below) = rest.split_at(slash);
        opened = Some(call::open_for_lookups(
            opened.as_ref().map_or(root, AsFd::as_fd),
            name,
        )?);
        rest = &below[1..];
    }
    call::open_for_reading(opened.as_ref().map_or(root, AsFd::as_fd), rest)
}
