//! Makes one entry, complete except for the content of a directory.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};

use huai_format::entry::{Body, Entry as Leaf, ROOT_OWNER};
use huai_sys::attributes::time_of;
use huai_sys::call;
use huai_sys::call::FileType;
use huai_sys::change::{self, LEAVE};
use huai_sys::error::Errno;

use super::attributes::Attributes;
use super::workplace::{Ground, OWNER_MAY_ALL, split};

/// The type of an entry.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind<'a> {
    /// An empty file of this size in bytes.
    File(u64),
    /// A symlink with this target.
    Symlink(&'a [u8]),
    /// Another name of the file at this path.
    Link(&'a [u8]),
    Directory,
}

/// An entry to make.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) kind: Kind<'a>,
    pub(super) attributes: Attributes,
}

/// The numbers of owners, by their names.
#[derive(Debug, Default)]
pub(super) struct OwnerNumbers {
    pub(super) users: HashMap<Vec<u8>, u32>,
    pub(super) groups: HashMap<Vec<u8>, u32>,
}

impl<'a> Entry<'a> {
    /// Return the entry of a leaf; `None` if the number of an owner is missing.  `usual` are those
    /// of root; both `LEAVE` to ignore the owners of leaves.
    pub(super) fn of(leaf: &'a Leaf<'_>, usual: (u32, u32), owners: &OwnerNumbers) -> Option<Self> {
        let (mut user, mut group) = usual;
        if usual != (LEAVE, LEAVE) {
            if *leaf.owner != *ROOT_OWNER {
                user = *owners.users.get(&*leaf.owner)?;
            }
            if *leaf.group != *ROOT_OWNER {
                group = *owners.groups.get(&*leaf.group)?;
            }
        }
        let kind = match &leaf.body {
            Body::File {
                link: Some(link), ..
            } => Kind::Link(link.as_bytes()),
            Body::File { size, .. } => Kind::File(*size),
            Body::Symlink { target } => Kind::Symlink(target),
            Body::Directory => Kind::Directory,
        };
        let attributes = Attributes {
            user,
            group,
            mode: leaf.mode.into(),
            mtime: time_of(leaf.mtime),
        };
        Some(Self { kind, attributes })
    }

    /// Make it as `name` in an open directory, where the name is free.
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

    /// Make a directory; without a building folder its attributes are set after its entries exist.
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
        let opened = call::open_for_reading(directory, name)?;
        let mut first = self.attributes;
        if !ground.privileged {
            first.mode |= OWNER_MAY_ALL; // or it could not be renamed
        }
        first.set(opened.as_fd(), unowned)
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
    // linkat(2) silently gives a symlink a second name.
    if call::status_at(from.as_fd(), leader)?.kind != FileType::RegularFile {
        return Err(Errno::INVAL);
    }
    change::make_link(from.as_fd(), leader, directory, name)
}

#[cfg(test)]
mod tests {
    use huai_format::line::Leaves;
    use huai_format::path::RelPath;

    use super::*;

    #[test]
    fn a_leaf_has_the_numbers_of_its_owners() {
        let directory = RelPath::trusted(b"a/b".to_vec());
        let text = b"f\t5\t-1.05\tm4755\tuann\tgftp\\x09users\nl\t5\t1\th../k\ns\t>../x\t1\n";
        let leaves: Vec<_> = Leaves::new(&directory, text, b"").flatten().collect();
        let mut owners = OwnerNumbers::default();
        assert!(Entry::of(&leaves[0], (0, 0), &owners).is_none());
        owners.users.insert(b"ann".to_vec(), 7);
        assert!(Entry::of(&leaves[0], (0, 0), &owners).is_none());
        owners.groups.insert(b"ftp\tusers".to_vec(), 8);
        let [file, link, symlink] =
            [0, 1, 2].map(|number| Entry::of(&leaves[number], (0, 1), &owners).unwrap());
        let Attributes {
            user,
            group,
            mode,
            mtime,
        } = file.attributes;
        assert!(matches!(file.kind, Kind::File(5)));
        assert_eq!((user, group, mode), (7, 8, 0o4755));
        assert_eq!((mtime.seconds, mtime.nanoseconds), (-1, 50_000_000));
        assert!(matches!(link.kind, Kind::Link(b"a/k")));
        let attributes = symlink.attributes;
        assert!(matches!(symlink.kind, Kind::Symlink(b"../x")));
        assert_eq!(
            (attributes.user, attributes.group, attributes.mode),
            (0, 1, 0o777)
        );
        let left = Entry::of(&leaves[0], (LEAVE, LEAVE), &OwnerNumbers::default()).unwrap();
        assert_eq!(
            (left.attributes.user, left.attributes.group),
            (LEAVE, LEAVE)
        );
    }
}
