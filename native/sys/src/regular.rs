//! Opens regular files below a root for reading.
//!
//! A file is examined first, which opens no device and no fifo: a user who can write in the tree
//! cannot make this process open one of these, or a file elsewhere.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use huai_format::path::split;
use rustix::fs::FileType;
use rustix::io::Errno;

use super::call::{self, Outcome, Status};
use super::error::{Error, Result};
use super::handle::Root;

/// Open the regular file at `path` below the directory `root`, which alone may be a symlink.
///
/// Returns `None` if a regular file is missing there, or a symlink is on the way.
pub fn open_regular(root: &[u8], path: &[u8]) -> Result<Option<OwnedFd>> {
    let top = Root::open(root)?;
    let (above, name) = split(path);
    let opened = top
        .enter(above)
        .and_then(|directory| open_regular_at(directory.as_fd(), name));
    match opened {
        Err(errno) if is_absence(errno) => Ok(None),
        Err(errno) => Err(Error::new("open", path, errno)),
        Ok(opened) => Ok(opened.map(|(file, _)| file)),
    }
}

/// Return true if an error means a missing entry, or a symlink on the way to it.
pub fn is_absence(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV
    )
}

/// Open the regular file `name` of an open directory, and return its status too; `None` if it is
/// not one, or was replaced meanwhile.
pub fn open_regular_at(
    directory: BorrowedFd<'_>,
    name: &[u8],
) -> Outcome<Option<(OwnedFd, Status)>> {
    let status = call::status_at(directory, name)?;
    open_as_seen(directory, name, &status)
}

/// Open the regular file `name`, whose status was `seen`, and return its present status too; `None`
/// if it is not one, or was replaced meanwhile.
pub fn open_as_seen(
    directory: BorrowedFd<'_>,
    name: &[u8],
    seen: &Status,
) -> Outcome<Option<(OwnedFd, Status)>> {
    if seen.kind != FileType::RegularFile {
        return Ok(None);
    }
    let file = call::open_file_at(directory, name)?;
    let status = call::status(file.as_fd())?;
    let is_same = (status.device, status.inode) == (seen.device, seen.inode);
    Ok(is_same.then_some((file, status)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporary::Folder;

    #[test]
    fn only_a_regular_file_is_opened() {
        let folder = Folder::new();
        folder.make_directory("directory");
        folder.write("file", b"content");
        let handle = call::open_root(folder.path()).unwrap();
        let (_, status) = open_regular_at(handle.as_fd(), b"file").unwrap().unwrap();
        assert_eq!(status.size, 7);
        assert!(
            open_regular_at(handle.as_fd(), b"directory")
                .unwrap()
                .is_none()
        );
        assert!(matches!(
            open_regular_at(handle.as_fd(), b"gone"),
            Err(Errno::NOENT)
        ));
        let devices = call::open_root(b"/dev").unwrap();
        assert!(open_regular_at(devices.as_fd(), b"null").unwrap().is_none());
        // A different entry than the examined one.
        let other = call::status_at(handle.as_fd(), &b"directory"[..]).unwrap();
        let other = Status {
            kind: status.kind,
            ..other
        };
        assert!(
            open_as_seen(handle.as_fd(), b"file", &other)
                .unwrap()
                .is_none()
        );
    }
}
