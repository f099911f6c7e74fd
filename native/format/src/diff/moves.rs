//! Finds directories that moved: equal ones, or similar ones.
//!
//! Directories with equal ids come first, the largest first, then those that share at least half
//! of their content, as in git; such a pair is compared as if the old directory had been at the
//! new path.  A similar pair gives way to moves of equal directories out of it and into it if these
//! save more.  No directory of a move is inside a directory of another move.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use huai_git::error::Result;
use huai_git::object::Kind;
use huai_git::oid::Oid;

use super::forest::{Forest, OwnTree};
use super::likeness::Likeness;
use crate::limits::PATH_BYTES;
use crate::path::RelPath;
use crate::snapshots::{ObjectReader, Snapshot};

/// One side of a comparison: the own directories only it has, and the limit of its entries.
pub(super) type Alone<'a, R> = (&'a Snapshot<R>, &'a [OwnTree], u64);

/// The moved directories.
#[derive(Debug, Default)]
pub(super) struct Moves {
    sources: HashMap<RelPath, OwnTree>,
    taken: HashSet<RelPath>,
}

impl Moves {
    /// Find moves from `old` to `new`; reads only pieces that one side has and the other lacks.
    pub(super) fn find<R: ObjectReader>(old: Alone<'_, R>, new: Alone<'_, R>) -> Result<Self> {
        if old.1.is_empty() || new.1.is_empty() {
            return Ok(Self::default());
        }
        let removed = Forest::read(old.0, old.1, old.2, |_| false)?;
        let mut by_id: HashMap<Oid, Vec<usize>> = HashMap::new();
        for (number, node) in removed.nodes.iter().enumerate() {
            by_id.entry(node.tree.oid).or_default().push(number);
        }
        let added = Forest::read(new.0, new.1, new.2, |oid| by_id.contains_key(oid))?;
        let likeness = Likeness::of((old.0, &removed), (new.0, &added), &by_id)?;
        let mut pairs = Pairs::new(&removed, &added);
        pairs.match_equal(&by_id, &likeness);
        pairs.match_alike(old.0, &likeness)?;
        Ok(pairs.moves())
    }

    /// Return the former directory of the one at `new`, if it was moved.
    pub(super) fn source(&self, new: &RelPath) -> Option<&OwnTree> {
        self.sources.get(new)
    }

    /// Return true if the directory at `old` moved.
    pub(super) fn has_moved(&self, old: &RelPath) -> bool {
        self.taken.contains(old)
    }

    /// Return the move that brought the directory at `new`, directly or with a parent; `None` if it
    /// did not move.
    pub(super) fn around(&self, new: &RelPath) -> Option<Move> {
        if self.sources.is_empty() {
            return None;
        }
        let above = new.ancestors().map(|path| RelPath::trusted(path.to_vec()));
        let mut line = std::iter::once(new.clone()).chain(above);
        line.find_map(|new| {
            let old = self.source(&new)?.path.clone();
            Some(Move { old, new })
        })
    }
}

/// A moved directory.
#[derive(Debug, Clone)]
pub struct Move {
    old: RelPath,
    new: RelPath,
}

impl Move {
    /// Return the former path of the directory at `path`, which moved directly or with a parent.
    pub(super) fn before(&self, path: &RelPath) -> RelPath {
        match path.as_bytes().get(self.new.as_bytes().len()..) {
            Some(rest @ [b'/', ..]) => RelPath::trusted([self.old.as_bytes(), rest].concat()),
            _ => self.old.clone(),
        }
    }

    /// Return the leader that the unchanged line of a hardlink names at the new path.
    ///
    /// A leader is stated relative to the link; one that would be outside of the module is kept.
    pub(super) fn translate_leader(&self, leader: RelPath) -> RelPath {
        let old: Vec<&[u8]> = components(&self.old);
        let path: Vec<&[u8]> = components(&leader);
        let shared = old
            .iter()
            .zip(&path)
            .take_while(|(one, other)| one == other);
        let shared = shared.count();
        let mut parts = components(&self.new);
        let Some(kept) = parts.len().checked_sub(old.len().abs_diff(shared)) else {
            return leader;
        };
        parts.truncate(kept);
        parts.extend(path.iter().skip(shared));
        RelPath::trusted(parts.join(&b'/'))
    }
}

fn components(path: &RelPath) -> Vec<&[u8]> {
    let parts = path.as_bytes().split(|&byte| byte == b'/');
    parts.filter(|part| !part.is_empty()).collect()
}

/// The pairs of old and new directories, by number.
struct Pairs<'a> {
    gone: &'a Forest,
    added: &'a Forest,
    /// Equal pairs: the old directory of each new one, and the opposite.
    equal: BTreeMap<usize, usize>,
    equal_of_old: BTreeMap<usize, usize>,
    /// Similar pairs: the old directory of each new one.
    alike: BTreeMap<usize, usize>,
    alike_of_old: BTreeMap<usize, usize>,
}

impl<'a> Pairs<'a> {
    fn new(gone: &'a Forest, added: &'a Forest) -> Self {
        Self {
            gone,
            added,
            equal: BTreeMap::new(),
            equal_of_old: BTreeMap::new(),
            alike: BTreeMap::new(),
            alike_of_old: BTreeMap::new(),
        }
    }

    /// Pair directories with equal ids, the largest first; each old one is used once.
    fn match_equal(&mut self, known: &HashMap<Oid, Vec<usize>>, likeness: &Likeness) {
        let nodes = self.added.nodes.iter().enumerate();
        let mut by_size: Vec<_> = nodes
            .filter_map(|(new, node)| Some((new, known.get(&node.tree.oid)?.clone())))
            .collect();
        by_size.sort_by_key(|(new, _)| Reverse(likeness.new.get(*new)));
        let mut left: HashMap<Oid, Vec<usize>> = HashMap::new();
        for (new, mut olds) in by_size {
            let Some(node) = self.added.nodes.get(new) else {
                continue;
            };
            let olds = left.entry(node.tree.oid).or_insert_with(|| {
                olds.reverse();
                olds
            });
            // An old directory that cannot be paired now never can be.
            while let Some(old) = olds.pop() {
                if is_free(self.gone, &self.equal_of_old, old) {
                    self.equal.insert(new, old);
                    self.equal_of_old.insert(old, new);
                    break;
                }
            }
        }
    }

    /// Pair directories that share at least half of the lines of the larger one and fit at the new path, beginning
    /// with the most shared lines.
    fn match_alike<R: ObjectReader>(
        &mut self,
        snapshot: &Snapshot<R>,
        likeness: &Likeness,
    ) -> Result<()> {
        let mut candidates: Vec<(usize, usize, u64)> = Vec::new();
        for (new, shared_lines) in likeness.shared.iter().enumerate() {
            for (&old, &shared) in shared_lines {
                let sizes = (likeness.old.get(old), likeness.new.get(new));
                let enough = sizes
                    .0
                    .max(sizes.1)
                    .is_some_and(|most| shared >= most.div_ceil(2));
                if enough && !self.equal.contains_key(&new) {
                    candidates.push((new, old, shared));
                }
            }
        }
        candidates.sort_by_key(|&(new, old, shared)| {
            let renamed = self.added.name(new) != self.gone.name(old);
            (Reverse(shared), renamed, new, old)
        });
        for (new, old, shared) in candidates {
            if self.may_pair(new, old) && self.has_room(snapshot, new, old)? {
                self.try_alike(new, old, shared, likeness);
            }
        }
        Ok(())
    }

    /// Return true if no similar pair has either directory, or one above or below it, and no equal
    /// pair the old directory or one above it; equal pairs below are for `try_alike`.
    fn may_pair(&self, new: usize, old: usize) -> bool {
        let mut line = self.gone.lineage(old);
        !line.any(|old| self.equal_of_old.contains_key(&old))
            && is_free(self.gone, &self.alike_of_old, old)
            && is_free(self.added, &self.alike, new)
    }

    /// Return true if every path in the directory is short enough at its new place.
    ///
    /// Only names in both snapshots are certain to fit; the others are not decoded, and taken to be
    /// as long as two lines.
    fn has_room<R: ObjectReader>(
        &self,
        snapshot: &Snapshot<R>,
        new: usize,
        old: usize,
    ) -> Result<bool> {
        let length = |forest: &Forest, number: usize| {
            let node = forest.nodes.get(number);
            node.map_or(0, |node| node.tree.path.as_bytes().len())
        };
        let (now, was) = (length(self.added, new), length(self.gone, old));
        if now <= was {
            return Ok(true);
        }
        let nodes = self.gone.nodes.get(self.gone.branch(old));
        for node in nodes.unwrap_or_default() {
            let above = node.tree.path.as_bytes().len().saturating_sub(was);
            for piece in &node.pieces {
                let text = snapshot.reader.read(piece, Kind::Blob)?;
                let lines = text.split(|&byte| byte == b'\n');
                let longest = lines.map(<[u8]>::len).max().unwrap_or_default();
                let below = longest.saturating_add(1).saturating_mul(2);
                if now.saturating_add(above).saturating_add(below) > PATH_BYTES {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Pair two similar directories and drop the equal pairs inside them; does nothing if these
    /// save more.
    fn try_alike(&mut self, new: usize, old: usize, shared: u64, likeness: &Likeness) {
        let into = self.equal.range(self.added.branch(new));
        let out = self.equal_of_old.range(self.gone.branch(old));
        let pairs = into.map(|(new, old)| (*new, *old));
        let touched: HashSet<(usize, usize)> =
            pairs.chain(out.map(|(old, new)| (*new, *old))).collect();
        let (mut given_up, mut inside) = (0_u64, 0_u64);
        for &(below, twin) in &touched {
            let weight = likeness.new.get(below).copied().unwrap_or_default();
            let sum = if self.is_same_place((new, old), (below, twin)) {
                &mut inside
            } else {
                &mut given_up
            };
            *sum = sum.saturating_add(weight);
        }
        if shared.saturating_sub(inside) < given_up {
            return;
        }
        for (new, old) in touched {
            self.equal.remove(&new);
            self.equal_of_old.remove(&old);
        }
        self.alike.insert(new, old);
        self.alike_of_old.insert(old, new);
    }

    /// Return true if two directories are at the same place in two others.
    fn is_same_place(&self, tops: (usize, usize), below: (usize, usize)) -> bool {
        let rest = |forest: &'a Forest, top: usize, below: usize| {
            let path = |number: usize| Some(forest.nodes.get(number)?.tree.path.as_bytes());
            path(below)?.strip_prefix(path(top)?)
        };
        let new = rest(self.added, tops.0, below.0);
        new.is_some() && new == rest(self.gone, tops.1, below.1)
    }

    /// Return the paired directories as moves.
    fn moves(&self) -> Moves {
        let mut moves = Moves::default();
        for (&new, &old) in self.equal.iter().chain(&self.alike) {
            let nodes = (self.added.nodes.get(new), self.gone.nodes.get(old));
            if let (Some(new), Some(old)) = nodes {
                moves.taken.insert(old.tree.path.clone());
                moves
                    .sources
                    .insert(new.tree.path.clone(), old.tree.clone());
            }
        }
        moves
    }
}

/// Return true if neither the directory nor any above or below it is in `pairs`.
fn is_free(forest: &Forest, pairs: &BTreeMap<usize, usize>, number: usize) -> bool {
    let below = pairs.range(forest.branch(number)).next();
    below.is_none()
        && !forest
            .lineage(number)
            .any(|number| pairs.contains_key(&number))
}
