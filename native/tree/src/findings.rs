//! What a comparison finds, as columns of bytes, in which it leaves the engine.

use huai_format::columns::{Columns, Role};
use huai_format::entry::{Body, Entry};
use huai_format::listing_diff::Sink;
use huai_format::path::RelPath;
use rustix::fs::FileType;

use crate::local::{Closed, Seen};

/// Text beyond which nothing more is taken.
const TEXT_BYTES: usize = 4 << 20;
/// The reason of a directory on another file system, beside the kernel's.
const MOUNT_POINT: i32 = -1;

/// What is said of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    /// It is there and should be.
    Match = 1,
    /// So many entries should be there and are not.
    Missing = 2,
    /// It is there and should not be, and is no directory.
    ExtraneousLeaf = 3,
    ExtraneousDirectory = 4,
    /// It cannot be read.
    UnreadableLeaf = 5,
    UnreadableDirectory = 6,
}

/// The attributes in which a path may differ: one bit each, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Attribute {
    /// It is something else.
    Type,
    /// Of a file.
    Size,
    /// The time of the last change.
    Mtime,
    /// The permission bits.
    Mode,
    /// The user.
    Owner,
    /// The group.
    Group,
    /// Of a symlink.
    Target,
    /// It is not another name of the file that it should be one of.
    Link,
}

/// A set of attributes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attributes(u8);

impl Attributes {
    /// Of one bit for each, in the order of `Attribute`.
    pub fn of_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// The same as bits.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// One more, if it differs.
    pub fn add_if(&mut self, attribute: Attribute, differs: bool) {
        self.0 |= u8::from(differs) << attribute as u8;
    }

    /// Whether it is one of them.
    pub fn has(self, attribute: Attribute) -> bool {
        self.0 >> attribute as u8 & 1 != 0
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// What was looked at.
#[derive(Debug, Clone, Copy, Default)]
pub struct Totals {
    /// Entries of the selection.
    pub entries: u64,
    /// Regular files among them.
    pub files: u64,
    /// Files without a digest.
    pub undigested: u64,
}

/// A batch of findings.
#[derive(Debug, Default)]
pub struct Findings {
    /// For each, little-endian: what is said, attributes that differ and type of what is there
    /// (one byte each, and one that is empty), mode, names, user, group (4 each), where its text
    /// ends (4), why it cannot be read (4), mtime, size or how many are missing, device and inode
    /// (8 each).
    pub records: Vec<u8>,
    /// The path of what should not be there or cannot be read; the target of a symlink that is.
    pub text: Vec<u8>,
    /// What should be there, where a match or an absence is said.
    pub wanted: Columns,
    /// Of all that was compared.
    pub totals: Totals,
    missing: u64,
    /// How many entries may still be compared.
    steps: usize,
}

impl Findings {
    /// Empty; full with about `most` of them, or when so many entries were compared.
    pub fn new(most: usize, steps: usize) -> Self {
        Self {
            steps,
            wanted: Columns::new(most),
            ..Self::default()
        }
    }

    /// Whether it is time to hand over what was found.
    pub(crate) fn is_full(&self) -> bool {
        self.steps == 0 || self.wanted.is_full() || self.text.len() >= TEXT_BYTES
    }

    /// One more entry was compared.
    pub(crate) fn step(&mut self) {
        self.steps = self.steps.saturating_sub(1);
    }

    /// It is time to hand over what was found.
    pub(crate) fn fill(&mut self) {
        self.steps = 0;
    }

    pub(crate) fn add_match(
        &mut self,
        (directory, entry): (&RelPath, &Entry<'_>),
        attributes: Attributes,
        seen: &Seen,
        target: &[u8],
    ) {
        self.wanted.push(Role::New, directory, entry);
        self.finish();
        self.text.extend_from_slice(target);
        self.put(Kind::Match, attributes, Some(seen), 0);
    }

    pub(crate) fn add_missing(&mut self, directory: &RelPath, entry: &Entry<'_>) {
        self.wanted.push(Role::New, directory, entry);
        self.missing += 1;
    }

    pub(crate) fn add_extraneous(&mut self, path: &[u8], directory: bool) {
        let kind = if directory {
            Kind::ExtraneousDirectory
        } else {
            Kind::ExtraneousLeaf
        };
        self.finish();
        self.text.extend_from_slice(path);
        self.put(kind, Attributes::default(), None, 0);
    }

    pub(crate) fn add_unreadable(&mut self, path: &[u8], why: Closed, directory: bool) {
        let kind = if directory {
            Kind::UnreadableDirectory
        } else {
            Kind::UnreadableLeaf
        };
        let why = match why {
            Closed::Errno(errno) => errno.raw_os_error(),
            Closed::MountPoint => MOUNT_POINT,
        };
        self.finish();
        self.text.extend_from_slice(path);
        self.put(kind, Attributes::default(), None, why);
    }

    /// An entry of the selection that was found or is missing.
    pub(crate) fn count(&mut self, entry: &Entry<'_>) {
        self.totals.entries += 1;
        if let Body::File { digest, .. } = entry.body {
            self.totals.files += 1;
            self.totals.undigested += u64::from(digest.is_none());
        }
    }

    /// Nothing comes any more.
    pub(crate) fn finish(&mut self) {
        if self.missing > 0 {
            let count = std::mem::take(&mut self.missing);
            let end = self.text_end();
            self.put_record(
                [Kind::Missing as u8, 0, 0],
                [0, 0, 0, 0, end, 0],
                [0, count, 0, 0],
            );
        }
    }

    fn put(&mut self, kind: Kind, attributes: Attributes, seen: Option<&Seen>, why: i32) {
        self.steps = self.steps.saturating_sub(1);
        let end = self.text_end();
        let why = u32::from_le_bytes(why.to_le_bytes());
        let Some(seen) = seen else {
            self.put_record([kind as u8, 0, 0], [0, 0, 0, 0, end, why], [0; 4]);
            return;
        };
        let mode = u32::from(seen.mode);
        self.put_record(
            [kind as u8, attributes.0, type_of(seen)],
            [mode, seen.links, seen.user, seen.group, end, why],
            [
                u64::from_le_bytes(seen.mtime.to_le_bytes()),
                seen.size,
                seen.device,
                seen.inode,
            ],
        );
    }

    fn text_end(&self) -> u32 {
        u32::try_from(self.text.len()).unwrap_or(u32::MAX)
    }

    fn put_record(&mut self, bytes: [u8; 3], narrow: [u32; 6], wide: [u64; 4]) {
        self.records.extend_from_slice(&bytes);
        self.records.push(0);
        for number in narrow {
            self.records.extend_from_slice(&number.to_le_bytes());
        }
        for number in wide {
            self.records.extend_from_slice(&number.to_le_bytes());
        }
    }
}

/// As `huai_format::columns` has it; 0 for what no snapshot holds.
fn type_of(seen: &Seen) -> u8 {
    match seen.kind {
        FileType::RegularFile => 1,
        FileType::Directory => 2,
        FileType::Symlink => 3,
        _ => 0,
    }
}
