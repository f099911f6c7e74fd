//! The records of fixed length in which findings leave the engine.

use huai_format::entries::{Body, Entry};
use huai_git::bug::fit;
use huai_plan::candidates::AttributeSet;

use super::local::Closed;

/// The bytes of text after which a batch is full.
const TEXT_BYTES: usize = 4 << 20;
/// The error code of a directory on another file system.
const MOUNT_POINT: i32 = -1;

/// The kinds of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    /// A wanted entry exists.
    Match = 1,
    /// A number of wanted entries are missing.
    Missing = 2,
    /// A leaf exists and is not wanted.
    ExtraneousLeaf = 3,
    ExtraneousDirectory = 4,
    /// A leaf is unreadable.
    UnreadableLeaf = 5,
    UnreadableDirectory = 6,
}

/// The amount of compared entries.
#[derive(Debug, Clone, Copy, Default)]
pub struct ComparisonTotals {
    /// The number of entries of the selection.
    pub entries: u64,
    /// The number of regular files among them.
    pub files: u64,
    /// The number of files without a digest.
    pub undigested: u64,
}

/// The records of findings, and the amount compared.
#[derive(Debug, Default)]
pub struct FindingRecords {
    /// For each, little-endian: kind and differing attributes (one byte each, and two
    /// empty ones), end of its text (4), error (4), number of missing entries
    /// (8).
    pub bytes: Vec<u8>,
    /// The paths of extraneous and unreadable entries.
    pub text: Vec<u8>,
    /// The totals of the comparison.
    pub totals: ComparisonTotals,
    missing: u64,
    /// The number of entries that may still be compared.
    steps: usize,
}

impl FindingRecords {
    /// Make an empty batch, full after `steps` compared entries.
    pub(crate) fn new(steps: usize) -> Self {
        Self {
            steps,
            ..Self::default()
        }
    }

    /// Return true if the batch is complete.
    pub(crate) fn is_full(&self) -> bool {
        self.steps == 0 || self.text.len() >= TEXT_BYTES
    }

    /// Count a compared entry.
    pub(crate) fn step(&mut self) {
        self.steps = self.steps.saturating_sub(1);
    }

    /// End the batch before it is full, so that the caller gets it now.
    pub(crate) fn fill(&mut self) {
        self.steps = 0;
    }

    /// Count an entry of the selection that was found or is missing.
    pub(crate) fn count(&mut self, entry: &Entry<'_>) {
        self.totals.entries += 1;
        if let Body::File { digest, .. } = entry.body {
            self.totals.files += 1;
            self.totals.undigested += u64::from(digest.is_none());
        }
    }

    pub(crate) fn add_match(&mut self, differing: AttributeSet) {
        self.begin(b"");
        self.put_record([Kind::Match as u8, differing.bits()], 0, 0);
    }

    /// Count a missing entry; neighbours get one record.
    pub(crate) fn add_missing(&mut self) {
        self.missing += 1;
    }

    pub(crate) fn add_extraneous(&mut self, path: &[u8], is_directory: bool) {
        let kind = if is_directory {
            Kind::ExtraneousDirectory
        } else {
            Kind::ExtraneousLeaf
        };
        self.add_finding(kind, path, 0);
    }

    /// Add the finding of an unreadable leaf or directory, with its errno, or -1 for a mount point.
    pub(crate) fn add_unreadable(&mut self, path: &[u8], why: Closed, is_directory: bool) {
        let kind = if is_directory {
            Kind::UnreadableDirectory
        } else {
            Kind::UnreadableLeaf
        };
        let why = match why {
            Closed::Errno(errno) => errno.raw_os_error(),
            Closed::MountPoint => MOUNT_POINT,
        };
        self.add_finding(kind, path, why);
    }

    /// Write the record of the missing entries counted so far.
    pub(crate) fn finish(&mut self) {
        if self.missing > 0 {
            let count = std::mem::take(&mut self.missing);
            self.put_record([Kind::Missing as u8, 0], 0, count);
        }
    }

    /// Add a finding that is not a match.
    fn add_finding(&mut self, kind: Kind, path: &[u8], why: i32) {
        self.begin(path);
        self.put_record([kind as u8, 0], why, 0);
    }

    /// Append the text of the next record, after the record of missing entries, and count a step.
    fn begin(&mut self, text: &[u8]) {
        self.finish();
        self.step();
        self.text.extend_from_slice(text);
    }

    /// Append a record of kind and differing attributes, errno, and number of missing entries.
    fn put_record(&mut self, bytes: [u8; 2], why: i32, missing: u64) {
        let text_end: u32 = fit(self.text.len());
        self.bytes.extend_from_slice(&bytes);
        self.bytes.extend_from_slice(&[0, 0]);
        self.bytes.extend_from_slice(&text_end.to_le_bytes());
        self.bytes.extend_from_slice(&why.to_le_bytes());
        self.bytes.extend_from_slice(&missing.to_le_bytes());
    }
}
