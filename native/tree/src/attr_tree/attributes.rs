//! Sets owner, mode and time of new entries.

use std::os::fd::BorrowedFd;

use huai_sys::attributes::time_of;
use huai_sys::call::{self, Time};
use huai_sys::change::{self, LEAVE};
use huai_sys::error::Errno;

/// The attributes of an entry.
#[derive(Debug, Clone, Copy)]
pub struct NewAttributes {
    pub(super) user: u32,
    /// Both are `LEAVE` if the creator stays the owner.
    pub(super) group: u32,
    pub(super) mode: u32,
    pub(super) mtime: Time,
}

impl NewAttributes {
    /// Return attributes with the numbers of user and group, if the creator does not stay the owner.
    pub fn new(mtime: i64, mode: u32, owners: Option<(u32, u32)>) -> Self {
        let (user, group) = owners.unwrap_or((LEAVE, LEAVE));
        Self {
            user,
            group,
            mode,
            mtime: time_of(mtime),
        }
    }

    /// Set all attributes of a file or directory; `unowned` counts owners that could not be set.
    pub(super) fn set(&self, of: BorrowedFd<'_>, unowned: &mut u64) -> Result<(), Errno> {
        self.own(unowned, || change::set_owner(of, self.user, self.group))?;
        change::set_mode(of, self.mode)?;
        set_mtime(of, self.mtime)
    }

    /// Set all attributes of a symlink.
    pub(super) fn set_of_symlink(
        &self,
        directory: BorrowedFd<'_>,
        name: &[u8],
        unowned: &mut u64,
    ) -> Result<(), Errno> {
        self.own(unowned, || {
            change::set_owner_at(directory, name, self.user, self.group)
        })?;
        change::set_mtime_at(directory, name, self.mtime)?;
        must_fit(self.mtime, || call::status_at(directory, name))
    }

    /// Set the owner, or count that this is not allowed: everything else in the listing is right.
    fn own(&self, unowned: &mut u64, set: impl FnOnce() -> Result<(), Errno>) -> Result<(), Errno> {
        if self.user == LEAVE && self.group == LEAVE {
            return Ok(());
        }
        match set() {
            // INVAL: the id does not exist in this user namespace.
            Err(Errno::PERM | Errno::INVAL) => {
                *unowned += 1;
                Ok(())
            }
            other => other,
        }
    }
}

/// Set a time; an error if the file system stores another one.
pub(super) fn set_mtime(of: BorrowedFd<'_>, mtime: Time) -> Result<(), Errno> {
    change::set_mtime(of, mtime)?;
    must_fit(mtime, || call::status(of))
}

/// Return an error if the file system stored another time than `wanted`.
fn must_fit(wanted: Time, look: impl FnOnce() -> Result<call::Status, Errno>) -> Result<(), Errno> {
    // Every file system holds such a time, so it need not be checked.
    let is_usual = (0..=i64::from(i32::MAX)).contains(&wanted.seconds);
    if is_usual || look()?.mtime == wanted {
        Ok(())
    } else {
        Err(Errno::OVERFLOW)
    }
}
