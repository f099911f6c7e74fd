//! The entries that wait in a store, and the fields of their lines.

use huai_format::entries::Digest;
use huai_format::entries::attributes::{put_decimal, put_mode, put_time};
use huai_format::escape::put_escaped;
use huai_git::cursor::Cursor;

use crate::entry::{EntryType, ListEntry, usual_mode};

const SECOND: i64 = 1_000_000_000;
/// The number of a group in a record of a file that has one name.
const ALONE: u32 = u32::MAX;
/// The bit of a record that ends with a digest.
const DIGESTED: u8 = 0x80;

/// An entry, borrowed from the bytes of a store, under its name.
#[derive(Debug)]
pub(crate) struct Record<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) kind: EntryType,
    pub(crate) size: u64,
    pub(crate) mtime: i64,
    mode: u16,
    pub(crate) owner: (u32, u32),
    target: &'a [u8],
    pub(crate) group: Option<u32>,
    pub(crate) digest: Option<Digest>,
}

/// The attributes of a directory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnAttributes {
    pub(crate) mtime: i64,
    owner: (u32, u32),
    mode: u16,
}

impl OwnAttributes {
    /// Return a record of these attributes, with an empty name.
    pub(crate) fn record(self) -> Record<'static> {
        Record {
            name: b"",
            kind: EntryType::Directory,
            size: 0,
            mtime: self.mtime,
            mode: self.mode,
            owner: self.owner,
            target: b"",
            group: None,
            digest: None,
        }
    }
}

impl<'a> Record<'a> {
    /// Borrow from an entry that fits a line.
    pub(crate) fn of(entry: &'a ListEntry) -> Self {
        Self {
            name: huai_format::path::basename(&entry.path),
            kind: entry.kind,
            size: entry.size,
            mtime: i64::try_from(entry.mtime).unwrap_or_default(),
            mode: entry.mode,
            owner: entry.owner,
            target: &entry.target,
            group: entry.group.filter(|_| entry.kind == EntryType::File),
            digest: entry.digest.filter(|_| entry.kind == EntryType::File),
        }
    }

    /// Return the attributes that a directory's own line has.
    pub(crate) fn own_attributes(&self) -> OwnAttributes {
        OwnAttributes {
            mtime: self.mtime,
            owner: self.owner,
            mode: self.mode,
        }
    }

    /// Append the record to the bytes of a store.
    pub(crate) fn append_to(&self, bytes: &mut Vec<u8>) {
        let kind = match self.kind {
            EntryType::File => 0,
            EntryType::Directory => 1,
            EntryType::Symlink => 2,
            EntryType::Special => 3,
        };
        let (user, group) = self.owner;
        bytes.push(if self.digest.is_some() {
            kind | DIGESTED
        } else {
            kind
        });
        bytes.extend_from_slice(&self.mode.to_be_bytes());
        bytes.extend_from_slice(&self.size.to_be_bytes());
        bytes.extend_from_slice(&self.mtime.to_be_bytes());
        for number in [user, group, self.group.unwrap_or(ALONE)] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        for text in [self.name, self.target] {
            let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
            bytes.extend_from_slice(&length.to_be_bytes());
            bytes.extend_from_slice(text);
        }
        bytes.extend(self.digest.iter().flatten());
    }

    /// Return the records of all entries in `bytes`.
    pub(crate) fn all(bytes: &'a [u8]) -> Vec<Self> {
        let mut cursor = Cursor::new(bytes);
        std::iter::from_fn(|| Self::read_from(&mut cursor)).collect()
    }

    /// Take a record as `append_to` encodes it; `None` if too few bytes are left.
    fn read_from(bytes: &mut Cursor<'a>) -> Option<Self> {
        let first = bytes.byte()?;
        let kind = match first & !DIGESTED {
            0 => EntryType::File,
            1 => EntryType::Directory,
            2 => EntryType::Symlink,
            _ => EntryType::Special,
        };
        let mode = u16::from_be_bytes(bytes.array()?);
        let size = bytes.u64()?;
        let mtime = i64::from_be_bytes(bytes.array()?);
        let owner = (bytes.u32()?, bytes.u32()?);
        let group = Some(bytes.u32()?).filter(|&number| number != ALONE);
        let mut text = || {
            let length = u16::from_be_bytes(bytes.array()?);
            bytes.take_bytes(usize::from(length))
        };
        let (name, target) = (text()?, text()?);
        let digest = if first & DIGESTED == 0 {
            None
        } else {
            Some(bytes.array()?)
        };
        Some(Self {
            name,
            kind,
            size,
            mtime,
            mode,
            owner,
            target,
            group,
            digest,
        })
    }

    /// Append the name as a line spells it.
    pub(crate) fn put_name(&self, line: &mut Vec<u8>) {
        put_escaped(line, self.name);
    }

    /// Append the fields before those of the owners, each after a tab.
    pub(crate) fn put_fields(&self, line: &mut Vec<u8>) {
        if self.kind != EntryType::Directory {
            line.push(b'\t');
        }
        match self.kind {
            EntryType::Directory => {}
            EntryType::Symlink => {
                line.push(b'>');
                put_escaped(line, self.target);
            }
            EntryType::File | EntryType::Special => put_decimal(line, self.size),
        }
        line.push(b'\t');
        let nanoseconds = u32::try_from(self.mtime.rem_euclid(SECOND)).unwrap_or_default();
        put_time(line, self.mtime.div_euclid(SECOND), nanoseconds);
        put_mode(line, u32::from(self.mode), usual_mode(self.kind));
    }
}
