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
    /// Return attributes with an mtime in nanoseconds and numbers of user and group; `None` if the creator stays the owner.
    pub fn new(mtime: i64, mode: u32, owners: Option<(u32, u32)>) -> Self {
        let (user, group) = owners.unwrap_or((LEAVE, LEAVE));
        Self {
            user,
            group,
            mode,
            mtime: time_of(mtime),
        }
    }

    /// Set owner, mode and mtime of an open file or directory; an owner that may not be set is counted in `unowned`.
    pub(super) fn set(&self, of: BorrowedFd<'_>, unowned: &mut u64) -> Result<(), Errno> {
        self.set_owner(unowned, || change::set_owner(of, self.user, self.group))?;
        change::set_mode(of, self.mode)?;
        set_mtime(of, self.mtime)
    }

    /// Set owner and mtime of a symlink, which has no mode; an owner that may not be set is counted in `unowned`.
    pub(super) fn set_of_symlink(
        &self,
        directory: BorrowedFd<'_>,
        name: &[u8],
        unowned: &mut u64,
    ) -> Result<(), Errno> {
        self.set_owner(unowned, || {
            change::set_owner_at(directory, name, self.user, self.group)
        })?;
        change::set_mtime_at(directory, name, self.mtime)?;
        must_fit(self.mtime, || call::status_at(directory, name))
    }

    /// Set the owner by `set`; if that is not permitted, count it in `unowned`: everything else in the listing is right.
    fn set_owner(
        &self,
        unowned: &mut u64,
        set: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
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

/// Set the mtime; fails with `OVERFLOW` if the file system stores another one.
pub(super) fn set_mtime(of: BorrowedFd<'_>, mtime: Time) -> Result<(), Errno> {
    change::set_mtime(of, mtime)?;
    must_fit(mtime, || call::status(of))
}

/// Fail with `OVERFLOW` if the file system stored another mtime than `wanted`.
fn must_fit(wanted: Time, look: impl FnOnce() -> Result<call::Status, Errno>) -> Result<(), Errno> {
    // Every file system holds such a time, so it need not be checked.
    let is_usual = (0..=i64::from(i32::MAX)).contains(&wanted.seconds);
    if is_usual || look()?.mtime == wanted {
        Ok(())
    } else {
        Err(Errno::OVERFLOW)
    }
}
