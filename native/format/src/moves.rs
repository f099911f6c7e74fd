//! Directories that vanished here and came back there: equal, or with changes inside.
//!
//! First come those whose ids are equal, the largest first.  Then those that share at least half
//! of what is in them, as git has it; what such a pair holds is compared as if the old directory
//! stood at the new path.  A pair gives way to moves of equal directories out of it and into it
//! if these bring more.  No directory of a move is inside one of another.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use crate::error::Result;
use crate::forest::{Forest, Tree};
use crate::git::object::Kind;
use crate::git::oid::Oid;
use crate::likeness::Likeness;
use crate::limits::PATH_BYTES;
use crate::objects::ObjectReader;
use crate::path::RelPath;
use crate::snapshot::Snapshot;

/// One side of a comparison: its directories that stand there alone, and what its entries may be.
pub type Alone<'a, R> = (&'a Snapshot<R>, &'a [Tree], u64);

/// Which directories are renamed.
#[derive(Debug, Default)]
pub struct Moves {
    sources: HashMap<RelPath, Tree>,
    taken: HashSet<RelPath>,
}

impl Moves {
    /// Those from `old` to `new`; reads only pieces that one side alone has.
    pub fn find<R: ObjectReader>(old: Alone<'_, R>, new: Alone<'_, R>) -> Result<Self> {
        if old.1.is_empty() || new.1.is_empty() {
            return Ok(Self::default());
        }
        let gone = Forest::read(old.0, old.1, old.2, |_| false)?;
        let mut known: HashMap<Oid, Vec<usize>> = HashMap::new();
        for (number, node) in gone.nodes.iter().enumerate() {
            known.entry(node.tree.oid).or_default().push(number);
        }
        let added = Forest::read(new.0, new.1, new.2, |oid| known.contains_key(oid))?;
        let likeness = Likeness::of((old.0, &gone), (new.0, &added), &known)?;
        let mut pairs = Pairs::new(&gone, &added);
        pairs.match_equal(&known, &likeness);
        pairs.match_alike(old.0, &likeness)?;
        Ok(pairs.moves())
    }

    /// The directory that stands at `new` now, as it was.
    pub fn source(&self, new: &RelPath) -> Option<&Tree> {
        self.sources.get(new)
    }

    /// Whether the directory at `old` went elsewhere.
    pub fn has_taken(&self, old: &RelPath) -> bool {
        self.taken.contains(old)
    }

    /// The move that brings what is at `new`, a directory in a renamed one or such a one itself.
    pub fn around(&self, new: &RelPath) -> Option<Move> {
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

/// A renamed directory.
#[derive(Debug, Clone)]
pub struct Move {
    old: RelPath,
    new: RelPath,
}

impl Move {
    /// Where the directory at `path`, in the renamed one or itself, was before.
    pub fn before(&self, path: &RelPath) -> RelPath {
        match path.as_bytes().get(self.new.as_bytes().len()..) {
            Some(rest @ [b'/', ..]) => RelPath::trusted([self.old.as_bytes(), rest].concat()),
            _ => self.old.clone(),
        }
    }

    /// What a hardlink in the directory, which named `leader`, names from where it is now.
    ///
    /// A leader is stated as seen from the link; one that would be outside of the module stays.
    pub fn seen(&self, leader: RelPath) -> RelPath {
        let old: Vec<&[u8]> = components(&self.old);
        let path: Vec<&[u8]> = components(&leader);
        let shared = old
            .iter()
            .zip(&path)
            .take_while(|(one, other)| one == other);
        let shared = shared.count();
        let mut found = components(&self.new);
        let Some(kept) = found.len().checked_sub(old.len().abs_diff(shared)) else {
            return leader;
        };
        found.truncate(kept);
        found.extend(path.iter().skip(shared));
        RelPath::trusted(found.join(&b'/'))
    }
}

fn components(path: &RelPath) -> Vec<&[u8]> {
    let parts = path.as_bytes().split(|&byte| byte == b'/');
    parts.filter(|part| !part.is_empty()).collect()
}

/// Pairs of old and new directories, by number.
struct Pairs<'a> {
    gone: &'a Forest,
    added: &'a Forest,
    /// Equal ones: the old one of each new one, and the other way round.
    equal: BTreeMap<usize, usize>,
    equal_of_old: BTreeMap<usize, usize>,
    /// The old one of each new one that is like it.
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

    /// Pair directories with equal ids, the largest first; each old one serves once.
    fn match_equal(&mut self, known: &HashMap<Oid, Vec<usize>>, likeness: &Likeness) {
        let nodes = self.added.nodes.iter().enumerate();
        let mut found: Vec<_> = nodes
            .filter_map(|(new, node)| Some((new, known.get(&node.tree.oid)?.clone())))
            .collect();
        found.sort_by_key(|(new, _)| Reverse(likeness.new.get(*new)));
        let mut left: HashMap<Oid, Vec<usize>> = HashMap::new();
        for (new, mut olds) in found {
            let Some(node) = self.added.nodes.get(new) else {
                continue;
            };
            let olds = left.entry(node.tree.oid).or_insert_with(|| {
                olds.reverse();
                olds
            });
            // What cannot be taken now never can be.
            while let Some(old) = olds.pop() {
                if is_free(self.gone, &self.equal_of_old, old) {
                    self.equal.insert(new, old);
                    self.equal_of_old.insert(old, new);
                    break;
                }
            }
        }
    }

    /// Pair directories that have much in common, those first that have most.
    fn match_alike<R: ObjectReader>(
        &mut self,
        snapshot: &Snapshot<R>,
        likeness: &Likeness,
    ) -> Result<()> {
        let mut found: Vec<(usize, usize, u64)> = Vec::new();
        for (new, votes) in likeness.shared.iter().enumerate() {
            for (&old, &shared) in votes {
                let sizes = (likeness.old.get(old), likeness.new.get(new));
                let enough = sizes
                    .0
                    .max(sizes.1)
                    .is_some_and(|most| shared >= most.div_ceil(2));
                if enough && !self.equal.contains_key(&new) {
                    found.push((new, old, shared));
                }
            }
        }
        found.sort_by_key(|&(new, old, shared)| {
            let renamed = self.added.name(new) != self.gone.name(old);
            (Reverse(shared), renamed, new, old)
        });
        for (new, old, shared) in found {
            if self.may_pair(new, old) && self.has_room(snapshot, new, old)? {
                self.try_alike(new, old, shared, likeness);
            }
        }
        Ok(())
    }

    /// Whether neither is in a pair, nor anything above or below it.
    fn may_pair(&self, new: usize, old: usize) -> bool {
        let mut line = self.gone.line(old);
        !line.any(|old| self.equal_of_old.contains_key(&old))
            && is_free(self.gone, &self.alike_of_old, old)
            && is_free(self.added, &self.alike, new)
    }

    /// Whether all that was in the directory can be named at its new path.
    ///
    /// Only what is in both snapshots certainly can; the rest is not decoded for this, and taken to
    /// be as long as two lines.
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

    /// Whether two directories lie in two others at the same place.
    fn is_same_place(&self, tops: (usize, usize), below: (usize, usize)) -> bool {
        let rest = |forest: &'a Forest, top: usize, below: usize| {
            let path = |number: usize| Some(forest.nodes.get(number)?.tree.path.as_bytes());
            path(below)?.strip_prefix(path(top)?)
        };
        let new = rest(self.added, tops.0, below.0);
        new.is_some() && new == rest(self.gone, tops.1, below.1)
    }

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

/// Whether neither a directory nor any above or below it is in `pairs`.
fn is_free(forest: &Forest, pairs: &BTreeMap<usize, usize>, number: usize) -> bool {
    let below = pairs.range(forest.branch(number)).next();
    below.is_none()
        && !forest
            .line(number)
            .any(|number| pairs.contains_key(&number))
}
