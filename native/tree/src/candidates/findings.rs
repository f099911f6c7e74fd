//! Collects candidates from the comparison of a tree with a snapshot.

use huai_format::entries::Entry;
use huai_format::path::RelPath;
use huai_plan::selection::Modes;
use huai_sys::call::Outcome;

use super::table::{Candidates, LocalState, Span};
use crate::compare::differing::AttributeSet;
use crate::compare::findings::{FindingRecords, FindingSink};
use crate::compare::local::LocalStatus;

/// A sink that adds missing and different entries to a table, and makes records of the rest.
#[derive(Debug)]
pub struct TableFindings<'a> {
    table: &'a mut Candidates,
    modes: Modes,
    /// The extraneous and unreadable entries.
    pub records: FindingRecords,
}

impl<'a> TableFindings<'a> {
    /// Add to `table`, with modes changed by `modes`; full after `steps` compared entries.
    pub fn new(table: &'a mut Candidates, modes: Modes, steps: usize) -> Self {
        Self {
            table,
            modes,
            records: FindingRecords::new(steps),
        }
    }

    fn path(&mut self, (directory, entry): (&RelPath, &Entry<'_>)) -> Outcome<Span> {
        if entry.name.is_empty() {
            self.table.add_text(directory.as_bytes())
        } else {
            self.table.add_text(directory.join(&entry.name).as_bytes())
        }
    }
}

impl FindingSink for TableFindings<'_> {
    fn is_full(&self) -> bool {
        self.records.is_full()
    }

    fn records(&mut self) -> &mut FindingRecords {
        &mut self.records
    }

    fn add_match(
        &mut self,
        wanted: (&RelPath, &Entry<'_>),
        differing: AttributeSet,
        seen: &LocalStatus,
        target: &[u8],
    ) -> Outcome<()> {
        let path = self.path(wanted)?;
        let stated = self.table.state(wanted.1, self.modes, None)?;
        let local = LocalState::Something {
            seen: *seen,
            target: self
                .table
                .add_text_once(target, [Some(stated.other), None])?,
            named: false,
        };
        self.table.push(path, Some(stated), &[], local);
        if let Some(row) = self.table.rows_mut().last_mut() {
            row.differing = differing;
        }
        Ok(())
    }

    fn add_missing(&mut self, wanted: (&RelPath, &Entry<'_>)) -> Outcome<()> {
        let path = self.path(wanted)?;
        let stated = self.table.state(wanted.1, self.modes, None)?;
        self.table
            .push(path, Some(stated), &[], LocalState::Nothing);
        Ok(())
    }
}
