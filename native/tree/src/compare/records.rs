//! Records of fixed length, in which findings leave the engine.

use huai_format::bug::fit;
use huai_format::entry::{Body, Entry};

use super::differing::Attributes;
use super::local::Closed;

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

/// Findings, and how much was compared.
#[derive(Debug, Default)]
pub struct Records {
    /// For each, little-endian: what is said and attributes that differ (one byte each, and two
    /// that are empty), where its text ends (4), why it cannot be read (4), how many are missing
    /// (8).
    pub bytes: Vec<u8>,
    /// The paths of what should not be there or cannot be read.
    pub text: Vec<u8>,
    /// Of all that was compared.
    pub totals: Totals,
    missing: u64,
    /// How many entries may still be compared.
    steps: usize,
}

impl Records {
    /// None; full when so many entries were compared.
    pub(crate) fn new(steps: usize) -> Self {
        Self {
            steps,
            ..Self::default()
        }
    }

    /// Whether it is time to hand them over.
    pub(crate) fn is_full(&self) -> bool {
        self.steps == 0 || self.text.len() >= TEXT_BYTES
    }

    /// One more entry was compared.
    pub(crate) fn step(&mut self) {
        self.steps = self.steps.saturating_sub(1);
    }

    /// It is time to hand them over.
    pub(crate) fn fill(&mut self) {
        self.steps = 0;
    }

    /// An entry of the selection that was found or is missing.
    pub(crate) fn count(&mut self, entry: &Entry<'_>) {
        self.totals.entries += 1;
        if let Body::File { digest, .. } = entry.body {
            self.totals.files += 1;
            self.totals.undigested += u64::from(digest.is_none());
        }
    }

    pub(crate) fn add_match(&mut self, differing: Attributes) {
        self.begin(b"");
        self.put_record([Kind::Match as u8, differing.bits()], 0, 0);
    }

    pub(crate) fn add_missing(&mut self) {
        self.missing += 1;
    }

    pub(crate) fn add_extraneous(&mut self, path: &[u8], directory: bool) {
        let kind = if directory {
            Kind::ExtraneousDirectory
        } else {
            Kind::ExtraneousLeaf
        };
        self.put(kind, path, 0);
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
        self.put(kind, path, why);
    }

    /// Nothing comes any more.
    pub(crate) fn finish(&mut self) {
        if self.missing > 0 {
            let count = std::mem::take(&mut self.missing);
            self.put_record([Kind::Missing as u8, 0], 0, count);
        }
    }

    /// What is said of a path that is no match.
    fn put(&mut self, kind: Kind, path: &[u8], why: i32) {
        self.begin(path);
        self.put_record([kind as u8, 0], why, 0);
    }

    /// What comes next has this text.
    fn begin(&mut self, text: &[u8]) {
        self.finish();
        self.step();
        self.text.extend_from_slice(text);
    }

    fn put_record(&mut self, bytes: [u8; 2], why: i32, missing: u64) {
        let text_end: u32 = fit(self.text.len());
        self.bytes.extend_from_slice(&bytes);
        self.bytes.extend_from_slice(&[0, 0]);
        self.bytes.extend_from_slice(&text_end.to_le_bytes());
        self.bytes.extend_from_slice(&why.to_le_bytes());
        self.bytes.extend_from_slice(&missing.to_le_bytes());
    }
}
