//! Makes one entry, complete except for the content of a directory.

use std::os::fd::{AsFd, BorrowedFd};

use huai_format::entries::{Body, Entry as Leaf};
use huai_sys::call;
use huai_sys::call::FileType;
use huai_sys::change;
use huai_sys::error::Errno;

use super::attributes::NewAttributes;
use super::workplace::{Ground, OWNER_MAY_ALL, split};

/// The type of an entry.
#[derive(Debug, Clone, Copy)]
pub enum NewKind<'a> {
    /// An empty file of this size in bytes.
    File(u64),
    /// A symlink with this target.
    Symlink(&'a [u8]),
    /// Another name of the file at this path.
    Link(&'a [u8]),
    /// An empty directory.
    Directory,
}

/// An entry to make.
#[derive(Debug, Clone, Copy)]
pub struct NewEntry<'a> {
    /// The type.
    pub kind: NewKind<'a>,
    /// All except the type.
    pub attributes: NewAttributes,
}

impl<'a> NewEntry<'a> {
    /// Return the entry of a leaf; without `owners` the creator stays the owner.
    pub(super) fn of(leaf: &'a Leaf<'_>, owners: Option<(u32, u32)>) -> Self {
        let kind = match &leaf.body {
            Body::File {
                link: Some(link), ..
            } => NewKind::Link(link.as_bytes()),
            Body::File { size, .. } => NewKind::File(*size),
            Body::Symlink { target } => NewKind::Symlink(target),
            Body::Directory => NewKind::Directory,
        };
        let attributes = NewAttributes::new(leaf.mtime, leaf.mode.into(), owners);
        Self { kind, attributes }
    }

    /// Make the entry as `name`, which must be free, in an open directory; counts owners that may not be set.
    pub(super) fn make(
        &self,
        ground: &Ground,
        directory: BorrowedFd<'_>,
        name: &[u8],
        unowned: &mut u64,
    ) -> Result<(), Errno> {
        match self.kind {
            NewKind::File(size) => {
                let file = change::make_file(directory, name)?;
                if size > 0 {
                    change::set_size(file.as_fd(), size)?;
                }
                self.attributes.set(file.as_fd(), unowned)
            }
            NewKind::Symlink(target) => {
                change::make_symlink(directory, name, target)?;
                self.attributes.set_of_symlink(directory, name, unowned)
            }
            NewKind::Link(leader) => make_link(ground, leader, directory, name),
            NewKind::Directory => self.make_directory(ground, directory, name),
        }
    }

    /// Make a directory.  With a building folder sets its attributes already; the caller sets them once its entries exist.
    fn make_directory(
        &self,
        ground: &Ground,
        directory: BorrowedFd<'_>,
        name: &[u8],
    ) -> Result<(), Errno> {
        change::make_directory(directory, name)?;
        if !ground.keeps {
            return Ok(());
        }
        let opened = call::open_for_reading(directory, name)?;
        let mut first = self.attributes;
        if !ground.privileged {
            first.mode |= OWNER_MAY_ALL; // or it could not be renamed
        }
        // An owner that may not be set is counted when the caller sets it.
        first.set(opened.as_fd(), &mut 0)
    }
}

/// Make a hardlink to `leader`; `INVAL` unless that is a regular file.
fn make_link(
    ground: &Ground,
    leader: &[u8],
    directory: BorrowedFd<'_>,
    name: &[u8],
) -> Result<(), Errno> {
    let (above, leader) = split(leader);
    let from = ground.root.directory(above)?;
    // linkat(2) silently gives a symlink a second name.
    if call::status_at(from.as_fd(), leader)?.kind != FileType::RegularFile {
        return Err(Errno::INVAL);
    }
    change::make_link(from.as_fd(), leader, directory, name)
}
