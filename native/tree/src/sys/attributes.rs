//! Setting owner, mode and time of one entry: in this order, and only those that differ.

use std::os::fd::{AsFd, BorrowedFd};

use huai_format::bug::fit;
use rustix::fs::FileType;

use super::call::{self, Outcome, Status, Time};
use super::change::{self, LEAVE};

/// Those bits that chown(2) clears.
const SET_ID: u32 = 0o6000;
/// Who owns a file may read it.
const OWNER_READS: u32 = 0o400;
const SECOND: i64 = 1_000_000_000;

/// What an entry is to have.
#[derive(Debug, Clone, Copy)]
pub struct Attributes {
    /// None: the owner stays.
    pub user: Option<u32>,
    /// None: the group stays.
    pub group: Option<u32>,
    /// Permission bits with setuid, setgid and sticky.
    pub mode: Mode,
    /// Nanoseconds since the epoch.
    pub mtime: i64,
}

/// Which mode an entry is to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// This one.
    Exact(u32),
    /// This one less the umask if it is made anew, else the one that it has.
    Kept(u32),
}

/// Which entry it is about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Of<'a> {
    /// An inode, by any handle of it.
    Inode(BorrowedFd<'a>),
    /// A file that is open to be read or written.
    Open(BorrowedFd<'a>),
    /// A path below a directory where nobody else can change names; no symlink is on the way.
    Own(BorrowedFd<'a>, &'a [u8]),
    /// A name in any directory; a symlink stands for itself.
    Name(BorrowedFd<'a>, &'a [u8]),
}

impl Attributes {
    pub(crate) fn time(&self) -> Time {
        time_of(self.mtime)
    }

    /// Sets all of a file or directory that now has this `status`.
    pub(crate) fn set(&self, of: Of<'_>, status: &Status) -> Outcome<()> {
        let chowned = self.set_owner(of, status)?;
        self.set_mode(of, status, chowned)?;
        self.set_time(of, status)
    }

    /// Sets all of an open staged file; false if they are left to whoever publishes it.  What fails
    /// here fails there as well, and is told there.
    pub(crate) fn finish(&self, file: BorrowedFd<'_>, status: &Status) -> bool {
        self.may_finish() && self.set(Of::Open(file), status).is_ok()
    }

    /// Whether a staged file can get them before it is known what is published.
    pub(crate) fn may_finish(&self) -> bool {
        // What a new file has that keeps another's mode depends on what is published before it, and
        // what its owner may not read cannot be the source of a twin.
        matches!(self.mode, Mode::Exact(mode) if mode & OWNER_READS != 0)
    }

    /// Sets all that a symlink has: on Linux it has no mode of its own.
    pub(crate) fn set_of_symlink(&self, of: Of<'_>, status: &Status) -> Outcome<()> {
        self.set_owner(of, status)?;
        self.set_time(of, status)
    }

    /// Sets owner and group; whether they differed.
    pub(crate) fn set_owner(&self, of: Of<'_>, status: &Status) -> Outcome<bool> {
        if self.has_owner(status) {
            return Ok(false);
        }
        let (user, group) = (self.user.unwrap_or(LEAVE), self.group.unwrap_or(LEAVE));
        match of {
            Of::Inode(handle) => change::set_owner_by_path(handle, user, group)?,
            Of::Open(file) => change::set_owner(file, user, group)?,
            Of::Own(directory, name) | Of::Name(directory, name) => {
                change::set_owner_at(directory, name, user, group)?;
            }
        }
        Ok(true)
    }

    /// Sets the mode, after the owner: chown(2) clears setuid and setgid.
    pub(crate) fn set_mode(&self, of: Of<'_>, status: &Status, chowned: bool) -> Outcome<()> {
        let Mode::Exact(mode) = self.mode else {
            return Ok(());
        };
        if status.mode == mode && !(chowned && mode & SET_ID != 0) {
            return Ok(());
        }
        match of {
            Of::Inode(handle) => change::set_mode_by_path(handle, mode),
            Of::Open(file) => change::set_mode(file, mode),
            Of::Own(directory, name) => change::set_mode_at(directory, name, mode),
            Of::Name(directory, name) => {
                let inode = call::open_inode(directory, name)?;
                change::set_mode_by_path(inode.as_fd(), mode)
            }
        }
    }

    fn set_time(&self, of: Of<'_>, status: &Status) -> Outcome<()> {
        let time = self.time();
        if status.mtime == time {
            return Ok(());
        }
        match of {
            Of::Inode(handle) => change::set_mtime_by_path(handle, time),
            Of::Open(file) => change::set_mtime(file, time),
            Of::Own(directory, name) | Of::Name(directory, name) => {
                change::set_mtime_at(directory, name, time)
            }
        }
    }

    fn has_owner(&self, status: &Status) -> bool {
        self.user.is_none_or(|user| user == status.user)
            && self.group.is_none_or(|group| group == status.group)
    }

    /// Whether a file with this status has all of them.
    pub(crate) fn are_of(&self, status: &Status) -> bool {
        let mut time = self.time();
        if status.mtime.nanoseconds == 0 {
            time.nanoseconds = 0; // there are file systems that keep no more
        }
        let has_mode = match self.mode {
            Mode::Exact(mode) => status.mode == mode,
            Mode::Kept(_) => true,
        };
        status.kind == FileType::RegularFile
            && status.mtime == time
            && has_mode
            && self.has_owner(status)
    }
}

/// A time in nanoseconds since the epoch as the kernel has it.
pub(crate) fn time_of(nanoseconds: i64) -> Time {
    Time {
        seconds: nanoseconds.div_euclid(SECOND),
        nanoseconds: fit(nanoseconds.rem_euclid(SECOND)),
    }
}
