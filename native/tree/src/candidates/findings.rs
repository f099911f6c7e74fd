//! Candidates from the comparison of a tree with a snapshot.

use huai_format::entry::Entry;
use huai_format::path::RelPath;
use huai_format::selection::Modes;

use super::table::{Candidates, Here, Span};
use crate::compare::differing::Attributes;
use crate::compare::findings::{Records, Sink};
use crate::compare::local::Seen;
use crate::sys::call::Outcome;

/// Puts what is missing or differs into a table; all else becomes records.
#[derive(Debug)]
pub struct TableFindings<'a> {
    table: &'a mut Candidates,
    modes: Modes,
    /// What should not be there or cannot be read.
    pub records: Records,
}

impl<'a> TableFindings<'a> {
    /// Into `table`, with the modes that `modes` makes; full when so many entries were compared.
    pub fn new(table: &'a mut Candidates, modes: Modes, steps: usize) -> Self {
        Self {
            table,
            modes,
            records: Records::new(steps),
        }
    }

    fn path(&mut self, (directory, entry): (&RelPath, &Entry<'_>)) -> Outcome<Span> {
        if entry.name.is_empty() {
            self.table.put(directory.as_bytes())
        } else {
            self.table.put(directory.join(&entry.name).as_bytes())
        }
    }
}

impl Sink for TableFindings<'_> {
    fn is_full(&self) -> bool {
        self.records.is_full()
    }

    fn records(&mut self) -> &mut Records {
        &mut self.records
    }

    fn add_match(
        &mut self,
        wanted: (&RelPath, &Entry<'_>),
        differing: Attributes,
        seen: &Seen,
        target: &[u8],
    ) -> Outcome<()> {
        let path = self.path(wanted)?;
        let stated = self.table.state(wanted.1, self.modes, None)?;
        let here = Here::Something {
            seen: *seen,
            target: self.table.put_again(target, [Some(stated.other), None])?,
            named: false,
        };
        self.table.push(path, Some(stated), &[], here);
        if let Some(row) = self.table.rows_mut().last_mut() {
            row.differing = differing;
        }
        Ok(())
    }

    fn add_missing(&mut self, wanted: (&RelPath, &Entry<'_>)) -> Outcome<()> {
        let path = self.path(wanted)?;
        let stated = self.table.state(wanted.1, self.modes, None)?;
        self.table.push(path, Some(stated), &[], Here::Nothing);
        Ok(())
    }
}
