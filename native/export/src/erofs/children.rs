//! The names in a directory, held compactly, and the blocks of directory entries made from them.
//!
//! Names are sorted by their bytes over the whole directory, with `.` and `..` among them: the
//! kernel uses a binary search.

use huai_git::bug::fit;

use crate::erofs::ondisk::{BLOCK, DIRENT_BYTES, Type};

/// An entry of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Child<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) nid: u64,
    pub(crate) kind: Type,
}

/// A sorted list of names; each takes about 10 bytes more than the name.
#[derive(Debug, Default)]
pub(crate) struct Children {
    /// The names, each ended by NUL.
    names: Vec<u8>,
    entries: Vec<(u64, Type)>,
}

impl Children {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Add a name that sorts after all others.
    pub(crate) fn add(&mut self, name: &[u8], nid: u64, kind: Type) {
        self.names.extend_from_slice(name);
        self.names.push(0);
        self.entries.push((nid, kind));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Child<'_>> {
        let names = self.names.split(|byte| *byte == 0);
        names.zip(&self.entries).map(|(name, (nid, kind))| Child {
            name,
            nid: *nid,
            kind: *kind,
        })
    }
}

/// Merge two sorted sequences.
pub(crate) fn merge<'a>(
    one: impl Iterator<Item = Child<'a>>,
    other: impl Iterator<Item = Child<'a>>,
) -> impl Iterator<Item = Child<'a>> {
    let (mut one, mut other) = (one.peekable(), other.peekable());
    std::iter::from_fn(move || match (one.peek(), other.peek()) {
        (Some(first), Some(second)) if second.name < first.name => other.next(),
        (Some(_), _) => one.next(),
        (None, _) => other.next(),
    })
}

/// A block of entries, without padding.
#[derive(Debug, Default)]
pub(crate) struct DirectoryBlock {
    pub(crate) data: Vec<u8>,
    /// The offset of the inode number of `.`, if it is in this block.
    pub(crate) own: Option<usize>,
    /// The offset of the inode number of `..`, if it is in this block.
    pub(crate) above: Option<usize>,
}

/// A block that is being filled.
#[derive(Debug, Default)]
pub(crate) struct Filling {
    /// The inode, type and name length of each entry.
    entries: Vec<(u64, Type, usize)>,
    names: Vec<u8>,
    own: Option<usize>,
    above: Option<usize>,
}

impl Filling {
    /// Return true if one more name fits.
    pub(crate) fn has_room(&self, child: &Child<'_>) -> bool {
        let entries = self.entries.len().saturating_add(1);
        let size = entries
            .saturating_mul(DIRENT_BYTES)
            .saturating_add(self.names.len())
            .saturating_add(child.name.len());
        size <= BLOCK
    }

    /// Add a child to the block, where it must fit; notes the places of `.` and `..`.
    pub(crate) fn add(&mut self, child: &Child<'_>) {
        let place = Some(self.entries.len().saturating_mul(DIRENT_BYTES));
        match child.name {
            b"." => self.own = place,
            b".." => self.above = place,
            _ => {}
        }
        self.entries.push((child.nid, child.kind, child.name.len()));
        self.names.extend_from_slice(child.name);
    }

    /// End the block; the next name begins another.
    pub(crate) fn finish_block(&mut self) -> DirectoryBlock {
        let mut data = Vec::with_capacity(BLOCK);
        let mut offset = self.entries.len().saturating_mul(DIRENT_BYTES);
        for (nid, kind, length) in self.entries.drain(..) {
            data.extend(nid.to_le_bytes());
            data.extend(fit::<_, u16>(offset).to_le_bytes());
            data.extend([kind.code(), 0]);
            offset = offset.saturating_add(length);
        }
        data.append(&mut self.names);
        DirectoryBlock {
            data,
            own: self.own.take(),
            above: self.above.take(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_however_many() {
        let mut children = Children::default();
        let names: Vec<Vec<u8>> = (1000..3000_u64)
            .map(|number| number.to_string().repeat(30).into_bytes())
            .collect();
        for (name, nid) in names.iter().zip(0..) {
            children.add(name, nid, Type::Regular);
        }
        assert!(children.iter().map(|child| child.name).eq(&names));
        assert!(children.iter().map(|child| child.nid).eq(0..2000));
        assert_eq!(Children::default().iter().count(), 0);
    }

    #[test]
    fn own_names_stand_where_they_sort() {
        let mut children = Children::default();
        for name in [&b"!"[..], b"-", b".a", b"a"] {
            children.add(name, 1, Type::Regular);
        }
        let dots = [&b"."[..], b".."].map(|name| Child {
            name,
            nid: 1,
            kind: Type::Directory,
        });
        let mut filling = Filling::default();
        for child in merge(children.iter(), dots.into_iter()) {
            assert!(filling.has_room(&child));
            filling.add(&child);
        }
        let block = filling.finish_block();
        assert_eq!((block.own, block.above), (Some(24), Some(36)));
        assert_eq!(block.data.len(), 6 * DIRENT_BYTES + 8);
    }

    #[test]
    fn blocks_are_filled_and_never_over() {
        let mut filling = Filling::default();
        let mut sizes = Vec::new();
        for number in 0..999_usize {
            let name = [
                format!("{number:03}").into_bytes(),
                vec![b'x'; number % 253],
            ]
            .concat();
            let child = Child {
                name: &name,
                nid: 1,
                kind: Type::Regular,
            };
            if !filling.has_room(&child) {
                sizes.push(filling.finish_block().data.len());
            }
            filling.add(&child);
        }
        assert!(
            sizes
                .iter()
                .all(|size| (BLOCK - 12 - 255..=BLOCK).contains(size))
        );
    }
}
