//! Plans the operations for candidates, and their order.
//!
//! `Candidates::has_content` alone decides if a file needs a transfer.

use std::collections::{HashMap, HashSet};

use huai_format::path::{RelPath, parent, path_order};

use super::differing::Attribute;
use super::table::{Candidates, EntryKind, Row, Stated};

/// The position of a row.
pub type Number = u32;

/// A plan that lacks only the stages of leaves.
#[derive(Debug, Default)]
pub struct Planned {
    /// The entries that make room for an entry of another type, deepest first.
    pub clear: Vec<Number>,
    /// The directories to make, parents first.
    pub make: Vec<Number>,
    /// All other entries to remove, deepest first.
    pub removals: Vec<Number>,
    /// The directories that get their final attributes, deepest first.
    pub directories: Vec<Number>,
    /// The files and symlinks, and true if more than their attributes changes.
    leaves: Vec<(Number, bool)>,
    /// The hardlinks whose path exists.
    members: Vec<Number>,
    /// The leaders of hardlinks.
    leaders: Vec<Vec<u8>>,
}

/// The operations on the leaves of one stage.
#[derive(Debug, Default)]
pub struct Operations {
    /// The files that get new content: new ones first, then replaced ones.
    ///
    /// From the first replacement on, old indices are wrong, and until the last one, new
    /// indices are.
    pub fetches: Vec<Number>,
    /// The hardlinks to make.
    pub links: Vec<Number>,
    /// The symlinks to make.
    pub symlinks: Vec<Number>,
    /// The files and symlinks that only get attributes.
    pub attributes: Vec<Number>,
}

impl Planned {
    /// Plan the operations that bring all rows of `table`, which need not be in order, to their
    /// wanted state.
    pub fn of(table: &Candidates) -> Self {
        let mut planner = Planner {
            table,
            planned: Self::default(),
            cleared: HashSet::new(),
            groups: Groups::new(table),
        };
        for number in in_tree_order(table) {
            planner.add(number);
        }
        let mut plan = planner.planned;
        plan.clear.reverse();
        plan.removals.reverse();
        plan.directories.reverse();
        plan.leaders = plan.leaders_of(table);
        plan
    }

    /// Return the leaders of planned hardlinks, each once.
    fn leaders_of(&self, table: &Candidates) -> Vec<Vec<u8>> {
        let mut known_leaders = HashSet::new();
        let leaders = self.numbers().filter_map(|number| leader(table, number));
        let first = leaders.filter(|leader| known_leaders.insert(*leader));
        first.map(<[u8]>::to_vec).collect()
    }

    fn numbers(&self) -> impl Iterator<Item = Number> {
        let leaves = self.leaves.iter().map(|(number, _)| *number);
        leaves.chain(self.members.iter().copied())
    }

    /// Return the number of paths that need a stage.
    pub fn len(&self) -> usize {
        self.leaves.len() + self.members.len() + self.leaders.len()
    }

    /// Return true if no path needs a stage.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Return the path in the tree at position `place` of those that need a stage of publishing,
    /// and true if it is a symlink; `None` after the last.
    pub fn path_for_stage<'a>(
        &'a self,
        table: &'a Candidates,
        place: usize,
    ) -> Option<(&'a [u8], bool)> {
        let members = place.checked_sub(self.leaves.len());
        let number = match members {
            None => self.leaves.get(place).map(|(number, _)| *number),
            Some(place) => self.members.get(place).copied(),
        };
        if let Some(row) = number.and_then(|number| row(table, number)) {
            let symlink = row
                .wanted
                .is_some_and(|wanted| wanted.kind == EntryKind::Symlink);
            return Some((table.path(row), symlink));
        }
        let place = members?.checked_sub(self.members.len())?;
        self.leaders.get(place).map(|leader| (&**leader, false))
    }

    /// Split the leaves into `count` stages; `stages` has the stage, below `count`, of each position of
    /// `path_for_stage`.  A hardlink comes no earlier than its leader.  One whose path exists is made again only if
    /// its leader gets new content, or its inode differs.
    pub fn in_stages(&self, table: &Candidates, count: usize, stages: &[u8]) -> Vec<Operations> {
        let before = self.leaves.len() + self.members.len();
        let leaders = self.leaders.iter().map(Vec::as_slice).zip(before..);
        let placed = Placed {
            table,
            leaders: leaders.collect(),
            stages,
        };
        let mut operations: Vec<Operations> = Vec::new();
        operations.resize_with(count, Operations::default);
        for (place, (number, made)) in self.leaves.iter().enumerate() {
            let stage = operations.get_mut(placed.stage(place, *number));
            let (Some(stage), Some((_, wanted))) = (stage, wanted_row(table, *number)) else {
                continue;
            };
            let list = match wanted.kind {
                _ if !made => &mut stage.attributes,
                EntryKind::Symlink => &mut stage.symlinks,
                _ if wanted.is_linked() => &mut stage.links,
                _ => &mut stage.fetches,
            };
            list.push(*number);
        }
        for stage in &mut operations {
            let is_there = |number: &Number| {
                row(table, *number).is_some_and(|row| table.local(row).kind().is_some())
            };
            stage.fetches.sort_by_key(is_there);
        }
        let replaced: HashSet<&[u8]> = if self.members.is_empty() {
            HashSet::new()
        } else {
            let fetches = operations.iter().flat_map(|stage| &stage.fetches);
            let rows = fetches.filter_map(|number| row(table, *number));
            rows.map(|row| table.path(row)).collect()
        };
        // Hardlinks are made again if their leader is replaced, or if they have another inode.
        for (place, number) in self.members.iter().enumerate() {
            let differs = row(table, *number).is_some_and(|row| row.differing.has(Attribute::Link));
            let anew = || leader(table, *number).is_some_and(|leader| replaced.contains(leader));
            if differs || anew() {
                let stage = placed.stage(self.leaves.len() + place, *number);
                if let Some(stage) = operations.get_mut(stage) {
                    stage.links.push(*number);
                }
            }
        }
        operations
    }
}

/// The stages of paths.
struct Placed<'a> {
    table: &'a Candidates,
    /// The position of the stage of each leader.
    leaders: HashMap<&'a [u8], usize>,
    stages: &'a [u8],
}

impl Placed<'_> {
    /// Return the stage of the path at `place`; a hardlink comes no earlier than its leader.
    fn stage(&self, place: usize, number: Number) -> usize {
        let leader = leader(self.table, number).and_then(|leader| self.leaders.get(leader));
        let own = self.at(place);
        leader.map_or(own, |leader| own.max(self.at(*leader)))
    }

    /// Return the stage that was given for the path at `place`; 0 without one.
    fn at(&self, place: usize) -> usize {
        self.stages.get(place).copied().map_or(0, usize::from)
    }
}

struct Planner<'a> {
    table: &'a Candidates,
    planned: Planned,
    /// The paths at which one type makes room for another.
    cleared: HashSet<&'a [u8]>,
    groups: Groups<'a>,
}

impl Planner<'_> {
    /// Plan the operations of a row.
    fn add(&mut self, number: Number) {
        let table = self.table;
        let Some(row) = row(table, number) else {
            return;
        };
        let Some(wanted) = row.wanted else {
            self.remove(number, row);
            return;
        };
        let local = table.local(row);
        if local.is_special() || row.differing.has(Attribute::Type) {
            self.clear_away(number, row, &wanted);
            self.create(number, &wanted);
        } else if local.status().is_none() {
            self.create(number, &wanted);
        } else {
            self.update(number, row, &wanted);
        }
    }

    /// Plan the removal of an entry, unless nothing is there: early, if it is below what makes room.
    fn remove(&mut self, number: Number, row: &Row) {
        if self.table.local(row).status().is_none() {
            return;
        }
        let path = self.table.path(row);
        let list = if is_below_any(path, &self.cleared) {
            &mut self.planned.clear
        } else {
            &mut self.planned.removals
        };
        list.push(number);
    }

    /// Plan to remove an entry of another type first, if no rename can replace it.
    fn clear_away(&mut self, number: Number, row: &Row, wanted: &Stated) {
        // Without directories, the rename that publishes the new entry replaces the old one.
        if self.table.local(row).kind() == Some(EntryKind::Directory) || wanted.is_directory() {
            self.cleared.insert(self.table.bytes(row.path));
            self.planned.clear.push(number);
        }
    }

    /// Plan a new entry.
    fn create(&mut self, number: Number, wanted: &Stated) {
        if wanted.is_directory() {
            self.planned.make.push(number);
            self.planned.directories.push(number);
        } else {
            self.planned.leaves.push((number, true));
        }
    }

    /// Plan what differs in an existing entry.  Whether a hardlink is made again is left to `in_stages`.
    fn update(&mut self, number: Number, row: &Row, wanted: &Stated) {
        let differs = !row.differing.is_empty();
        match wanted.kind {
            EntryKind::Directory => {
                if differs {
                    self.planned.directories.push(number);
                }
            }
            EntryKind::Symlink => {
                if row.differing.has(Attribute::Target) {
                    self.planned.leaves.push((number, true));
                } else if differs {
                    self.planned.leaves.push((number, false));
                }
            }
            EntryKind::File if wanted.is_linked() => self.planned.members.push(number),
            EntryKind::File => {
                if !self.table.has_content(row) || self.groups.must_leave_inode(row) {
                    self.planned.leaves.push((number, true));
                } else if differs {
                    self.planned.leaves.push((number, false));
                }
            }
        }
    }
}

/// The former hardlink groups: which file keeps the shared inode when a group is split.
struct Groups<'a> {
    table: &'a Candidates,
    /// The paths that are not wanted; collected on demand.
    gone: Option<HashSet<&'a [u8]>>,
    heirs: HashSet<&'a [u8]>,
}

impl<'a> Groups<'a> {
    fn new(table: &'a Candidates) -> Self {
        Self {
            table,
            gone: None,
            heirs: HashSet::new(),
        }
    }

    /// Return true if a file, which is not to be a hardlink, has to leave an inode that it shares, as far as earlier
    /// entries say.
    ///
    /// If the former leader is deleted, the first file of its group keeps the inode, which is noted.
    fn must_leave_inode(&mut self, row: &Row) -> bool {
        if row.differing.has(Attribute::Link) {
            return true;
        }
        let table = self.table;
        let status = table.local(row).status();
        if status.is_none_or(|status| status.links < 2) {
            return false;
        }
        let linked = table.past(row).iter().filter(|each| each.is_linked());
        let leaders: HashSet<&[u8]> = linked.map(|each| table.bytes(each.other)).collect();
        if leaders.is_empty() {
            return false;
        }
        let unwanted = self.gone.get_or_insert_with(|| {
            let removed = table.rows().iter().filter(|row| row.wanted.is_none());
            removed.map(|row| table.path(row)).collect()
        });
        if leaders.is_subset(unwanted) && self.heirs.is_disjoint(&leaders) {
            self.heirs.extend(leaders);
            return false;
        }
        true
    }
}

fn in_tree_order(table: &Candidates) -> Vec<Number> {
    let path = |number: &Number| row(table, *number).map_or(&b""[..], |row| table.path(row));
    let mut order: Vec<Number> = (0..).take(table.rows().len()).collect();
    order.sort_by(|one, other| path_order(path(one), path(other)));
    order
}

fn is_below_any(path: &[u8], among: &HashSet<&[u8]>) -> bool {
    !among.is_empty() && {
        let path = RelPath::trusted(path.to_vec());
        path.ancestors().any(|above| among.contains(above))
    }
}

fn row(table: &Candidates, number: Number) -> Option<&Row> {
    table.rows().get(number as usize)
}

fn wanted_row(table: &Candidates, number: Number) -> Option<(&Row, Stated)> {
    row(table, number).and_then(|row| row.wanted.map(|wanted| (row, wanted)))
}

/// Return the path of a hardlink's leader; `None` for another entry.
fn leader(table: &Candidates, number: Number) -> Option<&[u8]> {
    let (_, wanted) = wanted_row(table, number)?;
    wanted.is_linked().then(|| table.bytes(wanted.other))
}

/// Return the parent directories of these rows, each once, in the order in which they are met.
pub fn parents<'a>(table: &'a Candidates, rows: impl Iterator<Item = &'a Row>) -> Vec<&'a [u8]> {
    let mut visited = HashSet::new();
    let mut last: Option<&[u8]> = None;
    let mut directories = Vec::new();
    for row in rows {
        let above = parent(table.path(row));
        if last != Some(above) && visited.insert(above) {
            directories.push(above);
        }
        last = Some(above);
    }
    directories
}
