//! Sets owner, mode and time of one entry, in this order, and only those that differ.

use std::os::fd::{AsFd, BorrowedFd};

use huai_git::bug::fit;
use rustix::fs::FileType;

use super::call::{self, Outcome, Status, Time};
use super::change::{self, LEAVE};

/// The mode bits that chown(2) clears.
const SET_ID: u32 = 0o6000;
/// The permission of the owner to read.
const OWNER_READS: u32 = 0o400;
const SECOND: i64 = 1_000_000_000;

/// The attributes to set.
#[derive(Debug, Clone, Copy)]
pub struct Attributes {
    /// The user; `None` to keep it.
    pub user: Option<u32>,
    /// The group; `None` to keep it.
    pub group: Option<u32>,
    /// The permission bits with setuid, setgid and sticky.
    pub mode: Mode,
    /// The time in nanoseconds since the epoch.
    pub mtime: i64,
}

/// The mode to set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Exactly this mode.
    Exact(u32),
    /// This mode less the umask for a new entry; an existing one keeps its mode.
    Kept(u32),
}

/// The entry to change.
#[derive(Debug, Clone, Copy)]
pub enum Of<'a> {
    /// An inode, by any handle.
    Inode(BorrowedFd<'a>),
    /// A file that is open for reading or writing.
    Open(BorrowedFd<'a>),
    /// A path below a private directory, without symlinks.
    Own(BorrowedFd<'a>, &'a [u8]),
    /// A name in any directory; a symlink itself, not its target.
    Name(BorrowedFd<'a>, &'a [u8]),
}

impl Attributes {
    /// Return the mtime as a time of the kernel.
    pub fn time(&self) -> Time {
        time_of(self.mtime)
    }

    /// Set the attributes of a file or directory that differ from those in `status`, its present
    /// ones; a kept mode is left.
    pub fn set(&self, of: Of<'_>, status: &Status) -> Outcome<()> {
        let chowned = self.set_owner(of, status)?;
        self.set_mode(of, status, chowned)?;
        self.set_time(of, status)
    }

    /// Set all attributes of an open staged file; false if publishing has to set them.  An error
    /// here would occur there as well, and is reported there.
    pub fn finish(&self, file: BorrowedFd<'_>, status: &Status) -> bool {
        self.may_finish() && self.set(Of::Open(file), status).is_ok()
    }

    /// True if a staged file can get the attributes before it is known what is published.
    pub fn may_finish(&self) -> bool {
        // A kept mode of a replaced file depends on earlier publications, and a file that its owner
        // cannot read cannot be the source of a twin.
        matches!(self.mode, Mode::Exact(mode) if mode & OWNER_READS != 0)
    }

    /// Set owner and mtime of a symlink, which has no mode on Linux, where they differ from
    /// `status`.
    pub fn set_of_symlink(&self, of: Of<'_>, status: &Status) -> Outcome<()> {
        self.set_owner(of, status)?;
        self.set_time(of, status)
    }

    /// Set owner and group, unless `status` has them; true if they differed.
    pub fn set_owner(&self, of: Of<'_>, status: &Status) -> Outcome<bool> {
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

    /// Set an exact mode that differs, after `set_owner`, which returned `chowned`: chown(2) clears setuid and
    /// setgid.
    pub fn set_mode(&self, of: Of<'_>, status: &Status, chowned: bool) -> Outcome<()> {
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
            Of::Name(directory, name) => set_mode_of_name(directory, name, status, mode),
        }
    }

    /// Set the mtime, unless it is right already.
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

    /// Return true if user and group are the wanted ones; each that is `None` counts as equal.
    fn has_owner(&self, status: &Status) -> bool {
        self.user.is_none_or(|user| user == status.user)
            && self.group.is_none_or(|group| group == status.group)
    }

    /// True if `status` is that of a regular file with these attributes; a kept mode is not compared, nor the
    /// fraction of a second if the file has none.
    pub fn are_of(&self, status: &Status) -> bool {
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

/// Set the mode of the entry `name`, which had this `status`, never of the target of a symlink.
///
/// A file is opened: the path of its inode through `/proc` costs more.
fn set_mode_of_name(
    directory: BorrowedFd<'_>,
    name: &[u8],
    status: &Status,
    mode: u32,
) -> Outcome<()> {
    if status.kind == FileType::RegularFile {
        if let Ok(file) = call::open_file_at(directory, name) {
            return change::set_mode(file.as_fd(), mode);
        }
    }
    // The owner of a file may not be permitted to read it.
    let inode = call::open_inode(directory, name)?;
    change::set_mode_by_path(inode.as_fd(), mode)
}

/// Convert nanoseconds since the epoch to a time of the kernel.
pub fn time_of(nanoseconds: i64) -> Time {
    Time {
        seconds: nanoseconds.div_euclid(SECOND),
        nanoseconds: fit(nanoseconds.rem_euclid(SECOND)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporary::Folder;

    #[test]
    fn the_mode_of_a_name_is_set() {
        let folder = Folder::new();
        folder.write("file", b"content");
        folder.make_directory("directory");
        let top = call::open_root(folder.path()).unwrap();
        for name in [b"file".as_slice(), b"directory"] {
            for mode in [0o640, 0, 0o4711, 0o200, 0o755] {
                let status = call::status_at(top.as_fd(), name).unwrap();
                let attributes = Attributes {
                    user: None,
                    group: None,
                    mode: Mode::Exact(mode),
                    mtime: 0,
                };
                attributes
                    .set_mode(Of::Name(top.as_fd(), name), &status, false)
                    .unwrap();
                let status = call::status_at(top.as_fd(), name).unwrap();
                assert_eq!(status.mode, mode);
            }
        }
    }

    #[test]
    fn a_symlink_in_the_place_of_a_file_is_not_followed() {
        let folder = Folder::new();
        folder.write("file", b"content");
        let top = call::open_root(folder.path()).unwrap();
        let status = call::status_at(top.as_fd(), "file").unwrap();
        change::make_symlink(top.as_fd(), b"symlink", b"file").unwrap();
        // The errno is the file system's: no symlink has a mode.
        _ = set_mode_of_name(top.as_fd(), b"symlink", &status, 0o600);
        let after = call::status_at(top.as_fd(), "file").unwrap();
        assert_eq!(after.mode, status.mode);
    }
}
