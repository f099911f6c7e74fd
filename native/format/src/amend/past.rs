//! Reads the snapshot that is amended, from front to end.

use huai_git::error::Result;

use crate::amend::amendment::Amendment;
use crate::amend::sparse::{Reading, Sparse, Step};
use crate::path::RelPath;
use crate::snapshots;
use crate::snapshots::{EntryLimit, Level, ObjectReader, Snapshot};

/// A reader of the snapshot in tree order; own directories are opened on demand.
pub(super) struct SnapshotReader<'a, R> {
    pub(super) snapshot: &'a Snapshot<R>,
    limit: EntryLimit,
    pub(super) entries: u64,
    is_sparse: bool,
    levels: Vec<Reading>,
    pub(super) next: Option<Step>,
}

impl<'a, R: ObjectReader> SnapshotReader<'a, R> {
    /// Read a snapshot of at most `entries` entries; with `is_sparse`, unchanged pieces are not
    /// read.
    pub(super) fn new(snapshot: &'a Snapshot<R>, entries: u64, is_sparse: bool) -> Self {
        Self {
            snapshot,
            limit: EntryLimit::new(entries),
            entries,
            is_sparse,
            levels: Vec::new(),
            next: Some(Step::Own(RelPath::root(), snapshot.tree)),
        }
    }

    /// Return the path of the directory of the next part; `None` at the end.
    pub(super) fn peek(&mut self) -> Result<Option<&RelPath>> {
        while self.next.is_none() {
            let Some(level) = self.levels.last_mut() else {
                return Ok(None);
            };
            self.next = level.next(self.snapshot, &mut self.limit)?;
            if self.next.is_none() {
                self.levels.pop();
            }
        }
        Ok(self.next.as_ref().map(|step| match step {
            Step::Listing(listing) | Step::Leaves(listing) => &listing.path,
            Step::Own(path, _) | Step::Piece(path, _) => path,
        }))
    }

    /// Return the listing of the next directory and advance; opens it if it has a tree of its own.  With
    /// an amendment to apply there, only the beginning of the listing may be returned.  `None` if the next part is
    /// another.
    pub(super) fn listing(
        &mut self,
        amendment: Option<&Amendment>,
    ) -> Result<Option<snapshots::Listing>> {
        if let Some(Step::Own(path, tree)) = &self.next {
            let limit = &mut self.limit;
            let sparse = match amendment.filter(|_| self.is_sparse) {
                Some(amendment) => Sparse::open(self.snapshot, path, *tree, amendment, limit)?,
                None => None,
            };
            self.levels.push(match sparse {
                Some(sparse) => Reading::Sparse(sparse),
                None => Reading::Whole(Level::open(self.snapshot, path.clone(), *tree, limit)?),
            });
            self.next = None;
            self.peek()?;
        }
        match self.next.take() {
            Some(Step::Listing(listing)) => Ok(Some(listing)),
            other => {
                self.next = other;
                Ok(None)
            }
        }
    }

    /// Return the directory that is being read, if it is read in parts.
    pub(super) fn sparse(&self) -> Option<&Sparse> {
        match self.levels.last() {
            Some(Reading::Sparse(sparse)) => Some(sparse),
            _ => None,
        }
    }
}
