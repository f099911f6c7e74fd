//! Directories opened for changes, with their modes and times restored afterwards.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use huai_sys::call::{self, Status};
use huai_sys::change;
use huai_sys::error::Errno;
use huai_sys::handle::Root;

use super::attributes::set_mtime;

/// The permissions that an owner without privileges needs to work in a directory.
pub(super) const OWNER_MAY_ALL: u32 = 0o700;

/// The root of all work.
#[derive(Debug)]
pub(super) struct Ground {
    pub(super) root: Root,
    /// True if permissions do not matter.
    pub(super) privileged: bool,
    /// True if directories keep their times when their entries change.
    pub(super) keeps: bool,
}

/// An open directory.
#[derive(Debug)]
pub(super) struct Workplace {
    handle: OwnedFd,
    /// The mode and times to restore.
    before: Option<Status>,
    loosened: bool,
}

impl Ground {
    /// Open the directory at `path`.  If directories keep their times, its mode and mtime are remembered for `leave`, and a
    /// process without privileges gives it u+rwx.
    pub(super) fn enter(&self, path: &[u8]) -> Result<Workplace, Errno> {
        let handle = self.root.directory(path)?;
        let mut place = Workplace {
            handle,
            before: None,
            loosened: false,
        };
        if self.keeps {
            let before = call::status(place.handle())?;
            place.before = Some(before);
            if !self.privileged && before.mode & OWNER_MAY_ALL != OWNER_MAY_ALL {
                change::set_mode(place.handle(), before.mode | OWNER_MAY_ALL)?;
                place.loosened = true;
            }
        }
        Ok(place)
    }

    /// Enter the directory above the last name of `path`, and return that name.
    pub(super) fn enter_above<'a>(&self, path: &'a [u8]) -> Result<(Workplace, &'a [u8]), Errno> {
        let (above, name) = split(path);
        Ok((self.enter(above)?, name))
    }
}

impl Workplace {
    pub(super) fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    /// Restore the mode and mtime that the directory had at `enter`, if directories keep their times.
    pub(super) fn leave(self) -> Result<(), Errno> {
        let Some(before) = self.before else {
            return Ok(());
        };
        let mode = if self.loosened {
            change::set_mode(self.handle(), before.mode)
        } else {
            Ok(())
        };
        mode.and(set_mtime(self.handle(), before.mtime))
    }
}

/// Split a path into its directory and its last name.
pub(super) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        None => (b"", path),
        Some(slash) => {
            let (above, name) = path.split_at(slash);
            (above, &name[1..])
        }
    }
}
