//! Measures how much of the removed directories is in each new one.
//!
//! The measure is the number of lines.  A subtree that is equal on both sides counts whole, and an
//! equal piece of a cut manifest as one of average length; neither is read.  Only pieces that one
//! side has are compared line by line.  The cost is that of the differences: shared things are
//! looked up, and what many directories have says nothing.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hasher};

use huai_git::error::Result;
use huai_git::object::Kind;
use huai_git::oid::Oid;

use super::forest::{Forest, Node};
use crate::limits::PIECE_LINES;
use crate::snapshots::{ObjectReader, Snapshot};

/// The most directories that may share a thing, and that one may share with: more are ignored.
const HOLDERS: usize = 16;
/// The most lines of one side that are read.
const LINES_MOST: usize = 1 << 19;

/// One side: the snapshot, and the directories that only it has.
pub(crate) type Side<'a, R> = (&'a Snapshot<R>, &'a Forest);

/// The lines that the directories of two forests have in common.
#[derive(Debug)]
pub(crate) struct Likeness {
    /// The lines at and below each old directory.
    pub(crate) old: Vec<u64>,
    /// The lines at and below each new directory.
    pub(crate) new: Vec<u64>,
    /// The lines of each new directory that it shares with old ones, at the same places.
    pub(crate) shared: Vec<BTreeMap<usize, u64>>,
}

impl Likeness {
    /// Compare `old` and `new`; `known` has the old directories by their ids.
    pub(crate) fn of<R: ObjectReader>(
        old: Side<'_, R>,
        new: Side<'_, R>,
        known: &HashMap<Oid, Vec<usize>>,
    ) -> Result<Self> {
        let arrived: HashSet<Oid> = new.1.nodes.iter().map(|node| node.tree.oid).collect();
        let equal = |node: &Node| arrived.contains(&node.tree.oid);
        let mut covered: Vec<bool> = Vec::new();
        for node in &old.1.nodes {
            let above = node.above.and_then(|above| covered.get(above));
            covered.push(equal(node) || above.is_some_and(|above| *above));
        }
        let alone = |number: usize| !covered.get(number).is_some_and(|covered| *covered);
        let pieces = Holders::new(
            old.1
                .pieces()
                .filter(|(_, number)| alone(*number))
                .collect(),
        );
        let common: HashSet<Oid> = new.1.pieces().map(|(piece, _)| piece).collect();
        let common = |piece: &Oid| pieces.contains(piece) && common.contains(piece);
        let mut texts = Texts::default();
        let before = texts.hash_lines(old, |number, piece| alone(number) && !common(piece))?;
        let after = texts.hash_lines(new, |_, piece| !common(piece))?;
        texts.count_small(new, common)?;
        let old_weights = texts.weights(old.1, |_| 0);
        let weight = |known: &Vec<usize>| known.first().and_then(|first| old_weights.get(*first));
        let equal = |node: &Node| known.get(&node.tree.oid).and_then(weight).copied();
        let new_weights = texts.weights(new.1, |node| equal(node).unwrap_or(0));
        let mut shared_lines = SharedLines::new(new.1.nodes.len());
        for (number, node) in new.1.nodes.iter().enumerate() {
            if let (Some(twins), Some(weight)) = (known.get(&node.tree.oid), equal(node)) {
                shared_lines.add(number, twins.iter().copied(), weight);
            }
        }
        for (piece, number) in new.1.pieces() {
            shared_lines.add(number, pieces.of(&piece), texts.count(&piece));
        }
        let lines = Holders::new(before);
        for (line, number) in after {
            shared_lines.add(number, lines.of(&line), 1);
        }
        Ok(Self {
            old: old_weights,
            new: new_weights,
            shared: shared_lines.carried(old.1, new.1),
        })
    }
}

/// The directories that have a thing, by its key.
struct Holders<K> {
    sorted: Vec<(K, usize)>,
}

impl<K: Ord + Copy> Holders<K> {
    fn new(mut sorted: Vec<(K, usize)>) -> Self {
        sorted.sort_unstable();
        sorted.dedup();
        Self { sorted }
    }

    fn contains(&self, key: &K) -> bool {
        self.sorted
            .binary_search_by(|(held, _)| held.cmp(key))
            .is_ok()
    }

    /// Return the numbers of the directories that have the thing `key`.
    fn of(&self, key: &K) -> impl ExactSizeIterator<Item = usize> {
        let begin = self.sorted.partition_point(|(held, _)| held < key);
        let from = self.sorted.get(begin..).unwrap_or_default();
        let end = from.partition_point(|(held, _)| held == key);
        let range = from.get(..end).unwrap_or_default();
        range.iter().map(|(_, holder)| *holder)
    }
}

/// The number of lines of each piece that was read.
#[derive(Default)]
struct Texts(HashMap<Oid, u64>);

impl Texts {
    /// Return the hashes of the lines of the `wanted` pieces that were not read yet, each with the
    /// number of its directory; ends after about `LINES_MOST` lines.
    fn hash_lines<R: ObjectReader>(
        &mut self,
        side: Side<'_, R>,
        wanted: impl Fn(usize, &Oid) -> bool,
    ) -> Result<Vec<(u64, usize)>> {
        let mut numbered = Vec::new();
        for (piece, number) in side.1.pieces() {
            if numbered.len() >= LINES_MOST {
                break;
            }
            if wanted(number, &piece) && !self.0.contains_key(&piece) {
                let text = self.read(side.0, piece)?;
                let lines = text.split_inclusive(|&byte| byte == b'\n');
                numbered.extend(lines.map(|line| (number_of(line), number)));
            }
        }
        Ok(numbered)
    }

    /// Count the lines of shared pieces that may be small: the only pieces of a directory.
    fn count_small<R: ObjectReader>(
        &mut self,
        (snapshot, forest): Side<'_, R>,
        common: impl Fn(&Oid) -> bool,
    ) -> Result<()> {
        for node in &forest.nodes {
            if let [piece] = node.pieces[..] {
                if common(&piece) && !self.0.contains_key(&piece) {
                    self.read(snapshot, piece)?;
                }
            }
        }
        Ok(())
    }

    /// Read a piece, and store its number of lines.
    fn read<R: ObjectReader>(&mut self, snapshot: &Snapshot<R>, piece: Oid) -> Result<Vec<u8>> {
        let text = snapshot.reader.read(&piece, Kind::Blob)?;
        let count = text.iter().map(|&byte| u64::from(byte == b'\n')).sum();
        self.0.insert(piece, count);
        Ok(text)
    }

    /// Return the number of lines of a piece, or the average if it was not read.
    fn count(&self, piece: &Oid) -> u64 {
        self.0.get(piece).copied().unwrap_or(PIECE_LINES as u64)
    }

    /// Return the lines at and below each directory; `known` gives those of a directory that was
    /// not read, and 0 for others.
    fn weights(&self, forest: &Forest, known: impl Fn(&Node) -> u64) -> Vec<u64> {
        let weigh = |node: &Node| {
            let pieces = node.pieces.iter().map(|piece| self.count(piece));
            pieces.fold(known(node), u64::saturating_add)
        };
        let mut weights: Vec<u64> = forest.nodes.iter().map(weigh).collect();
        for number in (0..weights.len()).rev() {
            let weight = weights.get(number).copied().unwrap_or_default();
            let above = forest
                .above(number)
                .and_then(|above| weights.get_mut(above));
            if let Some(above) = above {
                *above = above.saturating_add(weight);
            }
        }
        weights
    }
}

/// Hash a line; a collision only makes directories seem more alike.
fn number_of(line: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(line);
    hasher.finish()
}

/// The lines that new directories share with old ones.
struct SharedLines(Vec<BTreeMap<usize, u64>>);

impl SharedLines {
    fn new(count: usize) -> Self {
        Self(vec![BTreeMap::new(); count])
    }

    /// Add `weight` lines that `new` shares with each of `old`; ignores lines of more than `HOLDERS` directories.
    fn add(&mut self, new: usize, old: impl ExactSizeIterator<Item = usize>, weight: u64) {
        if let Some(shared_lines) = self.0.get_mut(new).filter(|_| old.len() <= HOLDERS) {
            for old in old {
                #[cfg(test)]
                tests::count_shared();
                let sum = shared_lines.entry(old).or_default();
                *sum = sum.saturating_add(weight);
            }
        }
    }

    /// Return the shared lines of each new directory, by the number of the old one.  First adds the
    /// lines that each subdirectory shares with old ones of its name, the best `HOLDERS` of them,
    /// to those of the parents.
    fn carried(mut self, old: &Forest, new: &Forest) -> Vec<BTreeMap<usize, u64>> {
        for number in (0..self.0.len()).rev() {
            let Some(above) = new.above(number) else {
                continue;
            };
            let shared_lines = self.0.get(number).into_iter().flatten();
            let shared_lines =
                shared_lines.filter(|(twin, _)| old.name(**twin) == new.name(number));
            let mut best: Vec<(usize, u64)> = shared_lines.map(|(old, sum)| (*old, *sum)).collect();
            best.sort_unstable_by_key(|&(old, sum)| (std::cmp::Reverse(sum), old));
            for (twin, weight) in best.into_iter().take(HOLDERS) {
                self.add(above, old.above(twin).into_iter(), weight);
            }
        }
        self.0
    }
}

#[cfg(test)]
#[allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "a test that goes too far has failed"
)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::diff::forest::OwnTree;
    use crate::path::RelPath;

    thread_local! {
        static STEPS: Cell<u64> = const { Cell::new(0) };
    }

    /// Count one old directory with which a new one shares a thing.
    pub(super) fn count_shared() {
        STEPS.set(STEPS.get() + 1);
    }

    struct Texts(HashMap<Oid, Vec<u8>>);

    impl ObjectReader for Texts {
        fn read(&self, oid: &Oid, _: Kind) -> Result<Vec<u8>> {
            STEPS.set(STEPS.get() + 1);
            Ok(self.0[oid].clone())
        }
    }

    /// Make `count` directories, each with a line of all, one of its own, and one of its side.
    fn side(count: u32, own: u8) -> (Snapshot<Texts>, Forest) {
        let mut texts = HashMap::new();
        let mut nodes = Vec::new();
        for number in 0..count {
            let text =
                format!("a name of all\nthe file {number}\nof {own} {number}\n").into_bytes();
            let piece = Oid::of_own(Kind::Blob, &text);
            texts.insert(piece, text);
            nodes.push(Node {
                tree: OwnTree {
                    path: RelPath::trusted(format!("{own}-{number}").into_bytes()),
                    oid: Oid::of_own(Kind::Tree, &[&[own][..], &number.to_be_bytes()].concat()),
                },
                above: None,
                end: nodes.len() + 1,
                pieces: vec![piece],
            });
        }
        let snapshot = Snapshot {
            reader: Texts(texts),
            tree: Oid::of_own(Kind::Tree, b""),
        };
        (snapshot, Forest { nodes })
    }

    /// Return the number of objects read plus that of shared directories.
    fn steps(count: u32) -> u64 {
        let (old, new) = (side(count, 1), side(count, 2));
        let before = STEPS.get();
        let likeness = Likeness::of((&old.0, &old.1), (&new.0, &new.1), &HashMap::new()).unwrap();
        for (number, shared) in likeness.shared.iter().enumerate() {
            assert_eq!(shared, &BTreeMap::from([(number, 1)]));
        }
        STEPS.get() - before
    }

    #[test]
    fn twice_the_directories_take_twice_the_steps() {
        let (one, two) = (steps(100), steps(200));
        assert!(two <= 2 * one, "{one} {two}");
    }
}
