//! Entries as columns of bytes, the form in which they leave the engine.
//!
//! Each entry has one record of fixed length.  Its text is appended to `text`: the path, then a
//! symlink's target, a hardlink's leader, or the new path of a moved directory.  An owner or group
//! is stored as its position in `owners`.

use std::collections::HashMap;

use huai_git::bug::fit;

use super::listing_diff::Sink;
use crate::entries::{Body, Entry};
use crate::limits::DIGEST_BYTES;
use crate::path::RelPath;

/// The bytes of text after which a batch is full.
const TEXT_BYTES: usize = 4 << 20;

const FILE: u8 = 1;
const DIRECTORY: u8 = 2;
const SYMLINK: u8 = 3;
/// The bytes of a record that stay empty for a moved directory.
const MODE_TO_MTIME: usize = 18;
const OWNER_TO_DIGEST: usize = 40;

/// The role of an entry in a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Role {
    /// The entry is gone.
    Gone = 1,
    /// The entry is new.
    New = 2,
    /// The former state of an entry; the new one comes next.
    Before = 3,
    /// A directory that moved.
    Moved = 4,
}

/// A batch of entries.
#[derive(Debug, Default)]
pub struct Columns {
    /// For each entry, little-endian: role and type (one byte each), mode (2), size (8), mtime
    /// (8), the ends of its path and of its other text (4, 4), owner and group (4, 4), digest (32).
    pub records: Vec<u8>,
    /// Paths, targets and leaders.
    pub text: Vec<u8>,
    /// The names of owners and groups.
    pub owners: Vec<Vec<u8>>,
    numbers: HashMap<Vec<u8>, u32>,
    entries: usize,
    most: usize,
}

impl Columns {
    /// Make an empty batch, which is full with about `most` entries.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            ..Self::default()
        }
    }

    /// Return true if the batch is empty.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Add an entry of `directory`; with an empty name it is `directory` itself.
    pub fn push(&mut self, role: Role, directory: &RelPath, entry: &Entry<'_>) {
        self.text.extend_from_slice(directory.as_bytes());
        if !entry.name.is_empty() {
            if !directory.is_root() {
                self.text.push(b'/');
            }
            self.text.extend_from_slice(&entry.name);
        }
        let path_end = position(self.text.len());
        let (kind, size, digest, other): (u8, _, _, &[u8]) = match &entry.body {
            Body::File { size, link, digest } => {
                let link = link.as_ref().map_or(&b""[..], RelPath::as_bytes);
                (FILE, *size, digest.unwrap_or_default(), link)
            }
            Body::Directory => (DIRECTORY, 0, [0; DIGEST_BYTES], b""),
            Body::Symlink { target } => (SYMLINK, 0, [0; DIGEST_BYTES], target),
        };
        self.text.extend_from_slice(other);
        let (owner, group) = (self.number(&entry.owner), self.number(&entry.group));
        self.records.extend_from_slice(&[role as u8, kind]);
        self.records.extend_from_slice(&entry.mode.to_le_bytes());
        self.records.extend_from_slice(&size.to_le_bytes());
        self.records.extend_from_slice(&entry.mtime.to_le_bytes());
        for number in [path_end, position(self.text.len()), owner, group] {
            self.records.extend_from_slice(&number.to_le_bytes());
        }
        self.records.extend_from_slice(&digest);
        self.entries = self.entries.saturating_add(1);
    }

    /// Return the position of `owner` in `owners`, to which it is added if missing.
    fn number(&mut self, owner: &[u8]) -> u32 {
        if let Some(number) = self.numbers.get(owner) {
            return *number;
        }
        let number = position(self.owners.len());
        self.owners.push(owner.to_vec());
        self.numbers.insert(owner.to_vec(), number);
        number
    }
}

impl Sink for Columns {
    fn is_full(&self) -> bool {
        self.entries >= self.most || self.text.len() >= TEXT_BYTES
    }

    /// Add the old entry, as `Gone` without a new one, and then the new one.
    fn change(&mut self, directory: &RelPath, old: Option<&Entry<'_>>, new: Option<&Entry<'_>>) {
        if let Some(entry) = old {
            let role = if new.is_some() {
                Role::Before
            } else {
                Role::Gone
            };
            self.push(role, directory, entry);
        }
        if let Some(entry) = new {
            self.push(Role::New, directory, entry);
        }
    }

    /// Add a move: its text is the old path and then the new one.
    fn moved(&mut self, old: &RelPath, new: &RelPath) {
        self.text.extend_from_slice(old.as_bytes());
        let path_end = position(self.text.len());
        self.text.extend_from_slice(new.as_bytes());
        let end = position(self.text.len());
        self.records
            .extend_from_slice(&[Role::Moved as u8, DIRECTORY]);
        self.records.extend_from_slice(&[0; MODE_TO_MTIME]);
        self.records.extend_from_slice(&path_end.to_le_bytes());
        self.records.extend_from_slice(&end.to_le_bytes());
        self.records.extend_from_slice(&[0; OWNER_TO_DIGEST]);
        self.entries = self.entries.saturating_add(1);
    }
}

/// Convert a position in a batch, which is far below 4 GiB.
fn position(place: usize) -> u32 {
    fit(place)
}
