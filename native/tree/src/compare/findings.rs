//! What a comparison finds, and as columns of bytes, in which it leaves the engine.

use huai_format::columns::{Columns, Role};
use huai_format::entry::Entry;
use huai_format::listing_diff::Sink as _;
use huai_format::path::RelPath;

use super::differing::Attributes;
use super::local::Seen;
pub use super::records::{Records, Totals};
use crate::sys::call::Outcome;

/// Takes what a comparison finds.
pub trait Sink {
    /// Whether it is time to hand over what was found; a few more may come.
    fn is_full(&self) -> bool;

    /// Where all else is said, and how much was compared.
    fn records(&mut self) -> &mut Records;

    /// `wanted` (a directory and an entry in it) is there, as `seen`, with `target` if that is a
    /// symlink, and these attributes differ.
    fn add_match(
        &mut self,
        wanted: (&RelPath, &Entry<'_>),
        differing: Attributes,
        seen: &Seen,
        target: &[u8],
    ) -> Outcome<()>;

    /// `wanted` is not there.
    fn add_missing(&mut self, wanted: (&RelPath, &Entry<'_>)) -> Outcome<()>;
}

/// A batch of findings.
#[derive(Debug, Default)]
pub struct Findings {
    /// All of them.
    pub records: Records,
    /// What should be there, where a match or an absence is said.
    pub wanted: Columns,
}

impl Findings {
    /// Empty; full with about `most` of them, or when so many entries were compared.
    pub fn new(most: usize, steps: usize) -> Self {
        Self {
            records: Records::new(steps),
            wanted: Columns::new(most),
        }
    }
}

impl Sink for Findings {
    fn is_full(&self) -> bool {
        self.records.is_full() || self.wanted.is_full()
    }

    fn records(&mut self) -> &mut Records {
        &mut self.records
    }

    fn add_match(
        &mut self,
        (directory, entry): (&RelPath, &Entry<'_>),
        differing: Attributes,
        _seen: &Seen,
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
