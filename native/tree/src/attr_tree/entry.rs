//! Making one entry: complete, but for a directory that is still to be filled.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::attributes::Attributes;
use super::workplace::{Ground, OWNER_MAY_ALL, split};
use crate::sys::call;
use crate::sys::change;

/// What an entry is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind<'a> {
    /// An empty file of that size.
    File(u64),
    /// With its target.
    Symlink(&'a [u8]),
    /// One more name of the file at that path.
    Link(&'a [u8]),
    Directory,
}

/// What is to be made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) kind: Kind<'a>,
    pub(super) attributes: Attributes,
}

impl Entry<'_> {
    /// Makes it as `name` in an open directory, where nothing has that name.
    pub(super) fn make(
        &self,
        ground: &Ground,
        directory: BorrowedFd<'_>,
        name: &[u8],
        unowned: &mut u64,
    ) -> Result<(), Errno> {
        match self.kind {
            Kind::File(size) => {
                let file = change::make_file(directory, name)?;
                if size > 0 {
                    change::set_size(file.as_fd(), size)?;
                }
                self.attributes.set(file.as_fd(), unowned)
            }
            Kind::Symlink(target) => {
                change::make_symlink(directory, name, target)?;
                self.attributes.set_of_symlink(directory, name, unowned)
            }
            Kind::Link(leader) => make_link(ground, leader, directory, name),
            Kind::Directory => self.make_directory(ground, directory, name, unowned),
        }
    }

    /// In the building folder with its attributes; elsewhere they come when all below it is there.
    fn make_directory(
        &self,
        ground: &Ground,
        directory: BorrowedFd<'_>,
        name: &[u8],
        unowned: &mut u64,
    ) -> Result<(), Errno> {
        change::make_directory(directory, name)?;
        if !ground.keeps {
            return Ok(());
        }
        let made = call::open_here(directory, name)?;
        let mut first = self.attributes;
        if !ground.privileged {
            first.mode |= OWNER_MAY_ALL; // or it could not be renamed
        }
        first.set(made.as_fd(), unowned)
    }
}

fn make_link(
    ground: &Ground,
    leader: &[u8],
    directory: BorrowedFd<'_>,
    name: &[u8],
) -> Result<(), Errno> {
    let (above, leader) = split(leader);
    let from = ground.root.directory(above)?;
    // linkat(2) gives a symlink a second name without a word.
    if call::status_at(from.as_fd(), leader)?.kind != FileType::RegularFile {
        return Err(Errno::INVAL);
    }
    change::make_link(from.as_fd(), leader, directory, name)
}
