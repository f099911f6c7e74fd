//! The findings of a comparison, and their columns of bytes.

use huai_format::diff::{Columns, Role, Sink as _};
use huai_format::entries::Entry;
use huai_format::path::RelPath;
use huai_plan::candidates::{AttributeSet, LocalStatus};
use huai_sys::call::Outcome;

pub use super::records::{ComparisonTotals, FindingRecords};

/// A receiver of findings.
pub trait FindingSink {
    /// Return true if a batch is complete; a few more findings may follow.
    fn is_full(&self) -> bool;

    /// Return the records of other findings and of the amount compared.
    fn records(&mut self) -> &mut FindingRecords;

    /// Report that `wanted` (a directory and an entry in it) has these differing attributes (none if only its content
    /// is to be read) from `seen`, whose symlink target is `target`.
    fn add_match(
        &mut self,
        wanted: (&RelPath, &Entry<'_>),
        differing: AttributeSet,
        seen: &LocalStatus,
        target: &[u8],
    ) -> Outcome<()>;

    /// Report that `wanted` is missing.
    fn add_missing(&mut self, wanted: (&RelPath, &Entry<'_>)) -> Outcome<()>;
}

/// A batch of findings.
#[derive(Debug, Default)]
pub struct Findings {
    /// The records of all findings.
    pub records: FindingRecords,
    /// The wanted entries of matches and absences.
    pub wanted: Columns,
}

impl Findings {
    /// Make an empty batch, full with about `most` findings or after `steps` compared entries.
    pub fn new(most: usize, steps: usize) -> Self {
        Self {
            records: FindingRecords::new(steps),
            wanted: Columns::new(most),
        }
    }
}

impl FindingSink for Findings {
    fn is_full(&self) -> bool {
        self.records.is_full() || self.wanted.is_full()
    }

    fn records(&mut self) -> &mut FindingRecords {
        &mut self.records
    }

    fn add_match(
        &mut self,
        (directory, entry): (&RelPath, &Entry<'_>),
        differing: AttributeSet,
        _seen: &LocalStatus,
        _target: &[u8],
    ) -> Outcome<()> {
        self.wanted.push(Role::New, directory, entry);
        self.records.add_match(differing);
        Ok(())
    }

    fn add_missing(&mut self, (directory, entry): (&RelPath, &Entry<'_>)) -> Outcome<()> {
        self.wanted.push(Role::New, directory, entry);
        self.records.add_missing();
        Ok(())
    }
}
