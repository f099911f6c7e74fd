//! From candidates to operations, in their order.
//!
//! `Candidates::has_content` alone decides whether a file needs a transfer.

use std::collections::{HashMap, HashSet};

use huai_format::path::{RelPath, parent, path_order};

use super::table::{Candidates, Kind, Row, Stated};
use crate::compare::differing::Attribute;

/// The place of a row.
pub type Number = u32;

/// What has to be done; all but the stage of each leaf is decided.
#[derive(Debug, Default)]
pub struct Planned {
    /// What makes way for an entry of another type, deepest first.
    pub clear: Vec<Number>,
    /// Directories to make, parents first.
    pub make: Vec<Number>,
    /// All else that goes, deepest first.
    pub removals: Vec<Number>,
    /// Directories that get their final attributes, deepest first.
    pub directories: Vec<Number>,
    /// Files and symlinks, and whether more than their attributes is missing.
    leaves: Vec<(Number, bool)>,
    /// Hardlinks whose path exists.
    members: Vec<Number>,
    /// Leaders that hardlinks are made of.
    leaders: Vec<Vec<u8>>,
}

/// The leaves of one stage.
#[derive(Debug, Default)]
pub struct Operations {
    /// Files that get new content: new ones first, then those that are replaced.
    ///
    /// From the first replacement on the old indices are wrong, and until the last one the new
    /// indices are.
    pub fetches: Vec<Number>,
    /// Hardlinks to make.
    pub links: Vec<Number>,
    /// Symlinks to make.
    pub symlinks: Vec<Number>,
    /// Files and symlinks that only get attributes.
    pub attributes: Vec<Number>,
}

impl Planned {
    /// What brings all rows of `table` to what is wanted.
    pub fn of(table: &Candidates) -> Self {
        let order = in_tree_order(table);
        let mut planner = Planner {
            table,
            planned: Self::default(),
            cleared: HashSet::new(),
            groups: Groups::new(table),
        };
        for number in order {
            planner.add(number);
        }
        let mut found = planner.planned;
        found.clear.reverse();
        found.removals.reverse();
        found.directories.reverse();
        found.leaders = found.leaders_of(table);
        found
    }

    fn leaders_of(&self, table: &Candidates) -> Vec<Vec<u8>> {
        let mut seen = HashSet::new();
        let leaders = self.numbers().filter_map(|number| leader(table, number));
        let first = leaders.filter(|leader| seen.insert(*leader));
        first.map(<[u8]>::to_vec).collect()
    }

    fn numbers(&self) -> impl Iterator<Item = Number> {
        let leaves = self.leaves.iter().map(|(number, _)| *number);
        leaves.chain(self.members.iter().copied())
    }

    /// How many stages are asked for.
    pub fn len(&self) -> usize {
        self.leaves.len() + self.members.len() + self.leaders.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The path of which a stage is asked for, and whether it is a symlink's.
    pub fn asked<'a>(&'a self, table: &'a Candidates, place: usize) -> Option<(&'a [u8], bool)> {
        let members = place.checked_sub(self.leaves.len());
        let number = match members {
            None => self.leaves.get(place).map(|(number, _)| *number),
            Some(place) => self.members.get(place).copied(),
        };
        if let Some(row) = number.and_then(|number| row(table, number)) {
            let symlink = row
                .wanted
                .is_some_and(|wanted| wanted.kind == Kind::Symlink);
            return Some((table.path(row), symlink));
        }
        let place = members?.checked_sub(self.members.len())?;
        self.leaders.get(place).map(|leader| (&**leader, false))
    }

    /// Puts each leaf into its stage, of so many; `stages` are those of all that is `asked`.
    pub fn in_stages(&self, table: &Candidates, count: usize, stages: &[u8]) -> Vec<Operations> {
        let before = self.leaves.len() + self.members.len();
        let leaders = self.leaders.iter().map(Vec::as_slice).zip(before..);
        let placed = Placed {
            table,
            leaders: leaders.collect(),
            stages,
        };
        let mut found: Vec<Operations> = Vec::new();
        found.resize_with(count, Operations::default);
        for (place, (number, made)) in self.leaves.iter().enumerate() {
            let stage = found.get_mut(placed.stage(place, *number));
            let (Some(stage), Some((_, wanted))) = (stage, wanted(table, *number)) else {
                continue;
            };
            let list = match wanted.kind {
                _ if !made => &mut stage.attributes,
                Kind::Symlink => &mut stage.symlinks,
                _ if wanted.is_linked() => &mut stage.links,
                _ => &mut stage.fetches,
            };
            list.push(*number);
        }
        for stage in &mut found {
            let is_there = |number: &Number| {
                row(table, *number).is_some_and(|row| table.here(row).kind().is_some())
            };
            stage.fetches.sort_by_key(is_there);
        }
        let replaced: HashSet<&[u8]> = if self.members.is_empty() {
            HashSet::new()
        } else {
            let fetches = found.iter().flat_map(|stage| &stage.fetches);
            let rows = fetches.filter_map(|number| row(table, *number));
            rows.map(|row| table.path(row)).collect()
        };
        // The hardlinks to make again: of a leader that is replaced, or of another inode.
        for (place, number) in self.members.iter().enumerate() {
            let differs = row(table, *number).is_some_and(|row| row.differing.has(Attribute::Link));
            let anew = || leader(table, *number).is_some_and(|leader| replaced.contains(leader));
            if differs || anew() {
                let stage = placed.stage(self.leaves.len() + place, *number);
                if let Some(stage) = found.get_mut(stage) {
                    stage.links.push(*number);
                }
            }
        }
        found
    }
}

/// The stages that were asked for.
struct Placed<'a> {
    table: &'a Candidates,
    /// Where the stage of each leader is.
    leaders: HashMap<&'a [u8], usize>,
    stages: &'a [u8],
}

impl Placed<'_> {
    /// The stage of what is asked at `place`; a hardlink comes no earlier than its leader.
    fn stage(&self, place: usize, number: Number) -> usize {
        let leader = leader(self.table, number).and_then(|leader| self.leaders.get(leader));
        let own = self.at(place);
        leader.map_or(own, |leader| own.max(self.at(*leader)))
    }

    fn at(&self, place: usize) -> usize {
        self.stages.get(place).copied().map_or(0, usize::from)
    }
}

struct Planner<'a> {
    table: &'a Candidates,
    planned: Planned,
    /// Paths at which one type makes way for another.
    cleared: HashSet<&'a [u8]>,
    groups: Groups<'a>,
}

impl Planner<'_> {
    fn add(&mut self, number: Number) {
        let table = self.table;
        let Some(row) = row(table, number) else {
            return;
        };
        let Some(wanted) = row.wanted else {
            self.remove(number, row);
            return;
        };
        let here = table.here(row);
        if here.is_special() || row.differing.has(Attribute::Type) {
            self.clear_away(number, row, &wanted);
            self.create(number, &wanted);
        } else if here.seen().is_none() {
            self.create(number, &wanted);
        } else {
            self.update(number, row, &wanted);
        }
    }

    fn remove(&mut self, number: Number, row: &Row) {
        if self.table.here(row).seen().is_none() {
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

    fn clear_away(&mut self, number: Number, row: &Row, wanted: &Stated) {
        // Where no directory is involved, the rename that publishes the new entry replaces the old.
        if self.table.here(row).kind() == Some(Kind::Directory) || wanted.is_directory() {
            self.cleared.insert(self.table.bytes(row.path));
            self.planned.clear.push(number);
        }
    }

    fn create(&mut self, number: Number, wanted: &Stated) {
        if wanted.is_directory() {
            self.planned.make.push(number);
            self.planned.directories.push(number);
        } else {
            self.planned.leaves.push((number, true));
        }
    }

    fn update(&mut self, number: Number, row: &Row, wanted: &Stated) {
        let differs = !row.differing.is_empty();
        match wanted.kind {
            Kind::Directory => {
                if differs {
                    self.planned.directories.push(number);
                }
            }
            Kind::Symlink => {
                if row.differing.has(Attribute::Target) {
                    self.planned.leaves.push((number, true));
                } else if differs {
                    self.planned.leaves.push((number, false));
                }
            }
            Kind::File if wanted.is_linked() => self.planned.members.push(number),
            Kind::File => {
                if !self.table.has_content(row) || self.groups.must_part(row) {
                    self.planned.leaves.push((number, true));
                } else if differs {
                    self.planned.leaves.push((number, false));
                }
            }
        }
    }
}

/// Former hardlink groups: which file keeps the shared inode when a group is split.
struct Groups<'a> {
    table: &'a Candidates,
    /// Paths that are not wanted; found when they are first asked for.
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

    /// Whether a file, which is no hardlink now, has to leave an inode that it shares.
    ///
    /// If the former leader is deleted, the first file of its group that asks keeps the inode.
    fn must_part(&mut self, row: &Row) -> bool {
        if row.differing.has(Attribute::Link) {
            return true;
        }
        let table = self.table;
        let seen = table.here(row).seen();
        if seen.is_none_or(|seen| seen.links < 2) {
            return false;
        }
        let linked = table.past(row).iter().filter(|each| each.is_linked());
        let leaders: HashSet<&[u8]> = linked.map(|each| table.bytes(each.other)).collect();
        if leaders.is_empty() {
            return false;
        }
        let gone = self.gone.get_or_insert_with(|| {
            let gone = table.rows().iter().filter(|row| row.wanted.is_none());
            gone.map(|row| table.path(row)).collect()
        });
        if leaders.is_subset(gone) && self.heirs.is_disjoint(&leaders) {
            self.heirs.extend(leaders);
            return false;
        }
        true
    }
}

fn in_tree_order(table: &Candidates) -> Vec<Number> {
    let rows = table.rows();
    let mut order: Vec<(&[u8], Number)> = rows.iter().map(|row| table.path(row)).zip(0..).collect();
    order.sort_by(|one, other| path_order(one.0, other.0));
    order.into_iter().map(|(_, number)| number).collect()
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

fn wanted(table: &Candidates, number: Number) -> Option<(&Row, Stated)> {
    row(table, number).and_then(|row| row.wanted.map(|wanted| (row, wanted)))
}

/// The path that a hardlink is made of.
fn leader(table: &Candidates, number: Number) -> Option<&[u8]> {
    let (_, wanted) = wanted(table, number)?;
    wanted.is_linked().then(|| table.bytes(wanted.other))
}

/// The directories that the names of these rows are in, each once.
pub fn parents<'a>(table: &'a Candidates, rows: impl Iterator<Item = &'a Row>) -> Vec<&'a [u8]> {
    let mut seen = HashSet::new();
    let mut last: Option<&[u8]> = None;
    let mut found = Vec::new();
    for row in rows {
        let above = parent(table.path(row));
        if last != Some(above) && seen.insert(above) {
            found.push(above);
        }
        last = Some(above);
    }
    found
}
