//! Regular files below a root, opened to be read.
//!
//! A file is looked at first, which opens no device and no fifo: whoever may write in the tree
//! cannot make this process open one of these, or a file elsewhere.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::call::{self, Outcome};
use crate::error::{Error, Result};
use crate::handle::Root;

/// Opens the regular file at `path` below the directory `root`, which alone may be a symlink.
///
/// None: nothing there is a regular file.
pub fn open_regular(root: &[u8], path: &[u8]) -> Result<Option<OwnedFd>> {
    let top = Root::open(root)?;
    match open_below(&top, path) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => Ok(None),
        outcome => outcome.map_err(|errno| Error::new("open", path, errno)),
    }
}

fn open_below(root: &Root, path: &[u8]) -> Outcome<Option<OwnedFd>> {
    let place = root.look(path)?;
    if call::status(place.as_fd())?.kind != FileType::RegularFile {
        return Ok(None);
    }
    open_seen(place.as_fd()).map(Some)
}

/// Opens the file that was looked at.
pub(crate) fn open_seen(place: BorrowedFd<'_>) -> Outcome<OwnedFd> {
    let number = u32::try_from(place.as_raw_fd()).map_err(|_| Errno::BADF)?;
    call::reopen(number)
}
