//! Collects candidates from the comparison of a tree with a snapshot.

use huai_format::entries::Entry;
use huai_format::path::RelPath;
use huai_plan::candidates::{AttributeSet, Candidates, LocalState, LocalStatus, Stated, TableFull};
use huai_plan::selection::Modes;
use huai_sys::call::Outcome;

use super::local::no_memory;
use crate::compare::findings::{FindingRecords, FindingSink};

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

    /// Add a row for a wanted entry, with the local state that `local` returns.
    fn add(
        &mut self,
        (directory, entry): (&RelPath, &Entry<'_>),
        local: impl FnOnce(&mut Candidates, &Stated) -> Result<LocalState, TableFull>,
    ) -> Result<(), TableFull> {
        let path = if entry.name.is_empty() {
            self.table.add_text(directory.as_bytes())
        } else {
            self.table.add_text(directory.join(&entry.name).as_bytes())
        }?;
        let stated = self.table.state(entry, self.modes, None)?;
        let local = local(self.table, &stated)?;
        self.table.push(path, Some(stated), &[], local);
        Ok(())
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
        let local = |table: &mut Candidates, stated: &Stated| {
            Ok(LocalState::Something {
                seen: *seen,
                target: table.add_text_once(target, [Some(stated.other), None])?,
                named: false,
            })
        };
        self.add(wanted, local).map_err(no_memory)?;
        if let Some(row) = self.table.rows_mut().last_mut() {
            row.differing = differing;
        }
        Ok(())
    }

    fn add_missing(&mut self, wanted: (&RelPath, &Entry<'_>)) -> Outcome<()> {
        let nothing = |_: &mut Candidates, _: &Stated| Ok(LocalState::Nothing);
        self.add(wanted, nothing).map_err(no_memory)
    }
}
