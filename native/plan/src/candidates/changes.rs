//! Collects candidates from the comparison of two snapshots.

use huai_format::diff::Sink;
use huai_format::entries::Entry;
use huai_format::path::{RelPath, is_within, path_order};

use super::table::{Candidates, LocalState, Row, TableFull};
use crate::filter::Selector;
use crate::selection::Modes;

/// The number of changes between two checks for cancellation.
const MOST: usize = 10_000;

/// A sink that adds differences between two snapshots, after one filter, to a table.
#[derive(Debug)]
pub struct Changes<'a> {
    table: &'a mut Candidates,
    selector: Selector,
    modes: Modes,
    /// The directories that moved as a whole, from old to new path.
    pub moves: Vec<(Vec<u8>, Vec<u8>)>,
    /// True if the filter treats the two places of a moved directory differently.
    pub moves_differ: bool,
    /// The reason why no change was added since.
    pub full: Option<TableFull>,
    taken: usize,
    path: Vec<u8>,
}

impl<'a> Changes<'a> {
    /// Add to `table` what `selector` selects, with modes changed by `modes`; the local state of
    /// these rows is unknown.
    pub fn new(table: &'a mut Candidates, selector: Selector, modes: Modes) -> Self {
        Self {
            table,
            selector,
            modes,
            moves: Vec::new(),
            moves_differ: false,
            full: None,
            taken: 0,
            path: Vec::new(),
        }
    }

    /// Allow more changes before `is_full`.
    pub fn allow_more(&mut self) {
        self.taken = 0;
    }

    /// Return true if further changes are of no use: the table is full, or `moves_differ`.
    pub fn is_over(&self) -> bool {
        self.moves_differ || self.full.is_some()
    }

    /// Add a row with an unknown local state.
    fn add(&mut self, old: Option<&Entry<'_>>, new: Option<&Entry<'_>>) -> Result<(), TableFull> {
        let Self { table, modes, .. } = self;
        let state = new.map(|new| table.state(new, *modes, None)).transpose()?;
        let past = old
            .map(|old| table.state(old, *modes, state.as_ref()))
            .transpose()?;
        let path = self.table.add_text(&self.path)?;
        self.table
            .push(path, state, past.as_slice(), LocalState::Unknown);
        Ok(())
    }
}

impl Sink for Changes<'_> {
    fn is_full(&self) -> bool {
        self.taken >= MOST || self.is_over()
    }

    /// Count a change, and add a row for what the filter selects of it; `full` keeps the error.
    fn change(&mut self, directory: &RelPath, old: Option<&Entry<'_>>, new: Option<&Entry<'_>>) {
        self.taken += 1;
        let Some(either) = new.or(old) else {
            return;
        };
        if !self.selector.reaches(directory.as_bytes(), true) {
            return;
        }
        self.path.clear();
        self.path.extend_from_slice(directory.as_bytes());
        if !directory.is_root() && !either.name.is_empty() {
            self.path.push(b'/');
        }
        self.path.extend_from_slice(&either.name);
        let old = old.and_then(|old| self.selector.admit(directory, old.clone()));
        let new = new.and_then(|new| self.selector.admit(directory, new.clone()));
        if old.is_some() || new.is_some() {
            if let Err(full) = self.add(old.as_ref(), new.as_ref()) {
                self.full = Some(full);
            }
        }
    }

    /// Count a move, and note it in `moves`, or that `moves_differ`.
    fn moved(&mut self, old: &RelPath, new: &RelPath) {
        self.taken += 1;
        let (old, new) = (old.as_bytes(), new.as_bytes());
        let mut reaches = |path| self.selector.reaches(path, true);
        if reaches(old) && reaches(new) && self.selector.filter.is_alike_below(old, new) {
            self.moves.push((old.to_vec(), new.to_vec()));
        } else {
            self.moves_differ = true;
        }
    }
}

impl Candidates {
    /// Merge the rows of each path, in path order: the last wanted state, all past ones, and the
    /// rest of the first row.
    pub fn merge(&mut self) {
        let is_before =
            |one: &Row, other: &Row| path_order(self.path(one), self.path(other)).is_lt();
        if self.rows.is_sorted_by(is_before) {
            return;
        }
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        let path = |place: &usize| self.rows.get(*place).map_or(&b""[..], |row| self.path(row));
        order.sort_by(|one, other| path_order(path(one), path(other)));
        let mut rows = std::mem::take(&mut self.rows);
        put_in_order(&mut rows, order);
        rows.dedup_by(|row, last| {
            let same = self.path(row) == self.path(last);
            if same {
                last.wanted = row.wanted.or(last.wanted);
                let past = [self.past(last), self.past(row)].concat();
                self.set_past(last, &past);
            }
            same
        });
        self.rows = rows;
    }

    /// Keep only the first `rows` rows.
    pub fn truncate(&mut self, rows: usize) {
        self.rows.truncate(rows);
    }

    /// Return the row of a path, if there is one; rows must be in path order.
    pub fn find(&self, path: &[u8]) -> Option<&Row> {
        let place = self
            .rows
            .binary_search_by(|row| path_order(self.path(row), path))
            .ok()?;
        self.rows.get(place)
    }

    /// Return true if there is a row below the directory `path`; rows must be in path order.
    pub fn has_below(&self, path: &[u8]) -> bool {
        let is_before = |row: &Row| path_order(self.path(row), path).is_le();
        let next = self.rows.get(self.rows.partition_point(is_before));
        next.is_some_and(|row| is_within(self.path(row), path))
    }

    /// Mark these paths as free of local entries, those without a row left out; rows must be in
    /// path order.
    pub fn vacate(&mut self, paths: &[Vec<u8>]) {
        let places = paths.iter().filter_map(|path| {
            let order = |row: &Row| path_order(self.path(row), path);
            self.rows.binary_search_by(order).ok()
        });
        for place in places.collect::<Vec<_>>() {
            self.set_local(place, LocalState::Nothing);
        }
    }
}

/// Reorder rows by their numbers in `order`, without a copy of them: there may be very many.
fn put_in_order(rows: &mut [Row], mut order: Vec<usize>) {
    for first in 0..order.len() {
        let mut place = first;
        while let Some(next) = order.get_mut(place) {
            let from = std::mem::replace(next, place);
            if from == first {
                break;
            }
            rows.swap(place, from);
            place = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Candidates, LocalState};
    use crate::candidates::table::{EntryKind, Span, Stated, StatedMode};

    fn sized(size: u64) -> Stated {
        let mode = StatedMode {
            bits: 0o644,
            stated: 0o644,
            kept: false,
        };
        Stated {
            kind: EntryKind::File,
            mode,
            owner: 0,
            group: 0,
            mtime: 0,
            size,
            other: Span::default(),
            digest: Span::default(),
        }
    }

    #[test]
    fn rows_of_one_path_come_together_in_tree_order() {
        let mut table = Candidates::default();
        // "a" three times: its places are 1, 4 and 6 of a permutation of several cycles.
        for (path, wanted, past) in [
            ("d/z", Some(1), 10),
            ("a", None, 20),
            ("c", Some(3), 30),
            ("d", Some(4), 40),
            ("a", Some(5), 50),
            ("b", None, 60),
            ("a", None, 70),
        ] {
            let path = table.add_text(path.as_bytes()).unwrap();
            table.push(path, wanted.map(sized), &[sized(past)], LocalState::Unknown);
        }
        table.merge();
        let merged: Vec<_> = table
            .rows()
            .iter()
            .map(|row| {
                let past = table.past(row).iter().map(|past| past.size);
                let past = past.collect::<Vec<_>>();
                (table.path(row), row.wanted.map(|wanted| wanted.size), past)
            })
            .collect();
        let expected: [(&[u8], _, _); 5] = [
            (b"a", Some(5), vec![20, 50, 70]),
            (b"b", None, vec![60]),
            (b"c", Some(3), vec![30]),
            (b"d", Some(4), vec![40]),
            (b"d/z", Some(1), vec![10]),
        ];
        assert_eq!(merged, expected);
    }
}
