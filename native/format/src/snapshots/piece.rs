//! Reads the radix tree of the pieces of a cut manifest (FORMAT.md, "Pieces").
//!
//! Uses names and ids only, never the content of a piece.  A tree is refused unless a writer would
//! make the same one.  That also bounds the cost of a hostile tree, because no part of it can
//! be used under two names.

use std::collections::{BTreeMap, BTreeSet};

use huai_git::error::{Error, Result};
use huai_git::object::Kind;
use huai_git::oid::Oid;
use huai_git::tree::{TreeItem, decode_tree};
use sha2::{Digest, Sha256};

use super::objects::ObjectReader;
use crate::limits::{FANOUT, KEY_DIGITS};
use crate::path::{RelPath, at, quote, show};

/// The end of the name of a digest column, by which git tells it from its piece.
pub(crate) const COLUMN_SUFFIX: &[u8] = b".d";

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The name of a piece in its tree.
pub type Key = [u8; KEY_DIGITS];

/// The ids of pieces by key.
pub type PieceIds = BTreeMap<Key, Oid>;

/// Return the key, the first hexadecimal digits of a SHA-256, of the piece that begins with `start`.
pub fn piece_key(start: &[u8]) -> Key {
    let hash = Sha256::digest(start);
    std::array::from_fn(|place| {
        #[expect(clippy::indexing_slicing, reason = "a key is shorter than the hash")]
        let byte = hash[place / 2];
        let half = if place % 2 == 0 { byte >> 4 } else { byte & 15 };
        #[expect(clippy::indexing_slicing, reason = "half a byte is below 16")]
        DIGITS[usize::from(half)]
    })
}

/// An item of a tree of pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Item {
    Piece(Key, Oid),
    Digit(u8, Oid),
}

/// The tree `p` or `q` of one directory, with its reader.
pub struct PieceTree<'a, R> {
    reader: &'a R,
    tree: Option<Oid>,
    place: &'a RelPath,
    suffix: &'static [u8],
}

impl<'a, R: ObjectReader> PieceTree<'a, R> {
    /// Make a reader of the tree of texts, `None` if it is empty; `place` is for errors.
    pub fn texts(reader: &'a R, tree: Option<Oid>, place: &'a RelPath) -> Self {
        let suffix = b"";
        Self {
            reader,
            tree,
            place,
            suffix,
        }
    }

    /// Make a reader of the tree of digest columns, `None` if it is empty; `place` is for errors.
    pub fn columns(reader: &'a R, tree: Option<Oid>, place: &'a RelPath) -> Self {
        let suffix = COLUMN_SUFFIX;
        Self {
            reader,
            tree,
            place,
            suffix,
        }
    }

    /// Return all pieces; an error for a tree that no writer makes.
    pub fn all(&self) -> Result<PieceIds> {
        let mut pieces = PieceIds::new();
        if let Some(tree) = self.tree {
            self.collect(tree, &[], &mut pieces)?;
        }
        Ok(pieces)
    }

    /// Return the ids of those `keys` that exist; reads only the trees on the way to them, but all
    /// for more than `FANOUT` keys.
    pub fn look_up(&self, keys: &BTreeSet<Key>) -> Result<PieceIds> {
        let mut pieces = PieceIds::new();
        if keys.len() > FANOUT {
            pieces = self.all()?;
            pieces.retain(|key, _| keys.contains(key));
            return Ok(pieces);
        }
        let sorted_keys: Vec<Key> = keys.iter().copied().collect();
        let mut pending: Vec<(Option<Oid>, Vec<u8>, Vec<Key>)> =
            vec![(self.tree, vec![], sorted_keys)];
        while let Some((tree, prefix, sorted_keys)) = pending.pop() {
            let Some(tree) = tree.filter(|_| !sorted_keys.is_empty()) else {
                continue;
            };
            for item in self.read_node(tree, &prefix)? {
                match item {
                    Item::Piece(key, oid) if sorted_keys.contains(&key) => {
                        pieces.insert(key, oid);
                    }
                    Item::Piece(..) => {}
                    Item::Digit(digit, oid) => {
                        let inside = longer(&prefix, digit);
                        let below = sorted_keys.iter().filter(|key| key.starts_with(&inside));
                        let below = below.copied().collect();
                        pending.push((Some(oid), inside, below));
                    }
                }
            }
        }
        Ok(pieces)
    }

    /// Read the items of one tree: all pieces or all trees, and at least one.  Anything else is an error.
    fn read_node(&self, tree: Oid, prefix: &[u8]) -> Result<Vec<Item>> {
        let place = |error: Error| at(self.place, error);
        let data = self.reader.read(&tree, Kind::Tree)?;
        let items = decode_tree(&data).map_err(place)?;
        let split = items.first().is_some_and(|item| item.is_tree) && prefix.len() < KEY_DIGITS;
        let parse = |item: &TreeItem<'_>| {
            let parsed = if split {
                digit(item)
            } else {
                self.piece(item, prefix)
            };
            parsed.ok_or_else(|| {
                let name = quote(&show(item.name.get(..80).unwrap_or(item.name)));
                place(Error::new(format!("an unknown piece {name}")))
            })
        };
        let parsed: Vec<Item> = items.iter().map(parse).collect::<Result<_>>()?;
        if parsed.is_empty() || (!split && parsed.len() > FANOUT) {
            return Err(place(Error::new(
                "a tree of pieces that is empty or too large",
            )));
        }
        Ok(parsed)
    }

    /// Parse an item as a piece below `prefix`; `None` if it is not one.
    fn piece(&self, item: &TreeItem<'_>, prefix: &[u8]) -> Option<Item> {
        let (key, suffix) = item.name.split_first_chunk()?;
        let good = !item.is_tree && key.starts_with(prefix) && suffix == self.suffix;
        good.then_some(Item::Piece(*key, item.oid))
    }

    /// Collect all pieces at or below an item.
    fn below(&self, item: Option<&Item>, prefix: &[u8], found: &mut PieceIds) -> Result<()> {
        match item {
            None => Ok(()),
            Some(Item::Piece(key, oid)) => {
                found.insert(*key, *oid);
                Ok(())
            }
            Some(Item::Digit(digit, oid)) => self.collect(*oid, &longer(prefix, *digit), found),
        }
    }

    /// Collect all pieces in `tree`, which is at `prefix`; refuses a tree that is split without need.
    fn collect(&self, tree: Oid, prefix: &[u8], found: &mut PieceIds) -> Result<()> {
        let mut open = vec![self.open(tree, prefix, found)?];
        while let Some(level) = open.last_mut() {
            match level.items.next() {
                Some(Item::Piece(key, oid)) => {
                    found.insert(key, oid);
                }
                Some(Item::Digit(digit, oid)) => {
                    level.is_split = true;
                    let inside = longer(&level.prefix, digit);
                    let next = self.open(oid, &inside, found)?;
                    open.push(next);
                }
                None => {
                    let count = found.len().saturating_sub(level.before);
                    if level.is_split && count <= FANOUT {
                        let rule = "a tree of pieces that is split without need";
                        return Err(at(self.place, Error::new(rule)));
                    }
                    open.pop();
                }
            }
        }
        Ok(())
    }

    /// Read a tree, which is at `prefix`, for its pieces to be collected.
    fn open(&self, tree: Oid, prefix: &[u8], found: &PieceIds) -> Result<Level> {
        Ok(Level {
            items: self.read_node(tree, prefix)?.into_iter(),
            prefix: prefix.to_vec(),
            before: found.len(),
            is_split: false,
        })
    }
}

/// A tree whose pieces are being collected.
struct Level {
    items: std::vec::IntoIter<Item>,
    prefix: Vec<u8>,
    before: usize,
    is_split: bool,
}

/// Return the pieces of each side that the other lacks, or has with another id; reads no tree that
/// both have.
pub fn unequal<R: ObjectReader>(
    old: &PieceTree<'_, R>,
    new: &PieceTree<'_, R>,
) -> Result<(PieceIds, PieceIds)> {
    let (mut gone, mut added) = (PieceIds::new(), PieceIds::new());
    let mut pending: Vec<(Vec<u8>, Oid, Oid)> = Vec::new();
    if let (Some(before), Some(after)) = (old.tree, new.tree) {
        pending.push((vec![], before, after));
    } else {
        (gone, added) = (old.all()?, new.all()?);
    }
    while let Some((prefix, before, after)) = pending.pop() {
        if before == after {
            continue;
        }
        let (here, there) = (
            old.read_node(before, &prefix)?,
            new.read_node(after, &prefix)?,
        );
        let other: BTreeMap<&[u8], &Item> = there.iter().map(|item| (item.name(), item)).collect();
        let names: BTreeSet<&[u8]> = here.iter().map(Item::name).collect();
        for item in &here {
            let twin = other.get(item.name()).copied();
            if let (Item::Digit(digit, one), Some(Item::Digit(_, two))) = (item, twin) {
                pending.push((longer(&prefix, *digit), *one, *two));
            } else if Some(item) != twin {
                old.below(Some(item), &prefix, &mut gone)?;
                new.below(twin, &prefix, &mut added)?;
            }
        }
        for item in there.iter().filter(|item| !names.contains(item.name())) {
            new.below(Some(item), &prefix, &mut added)?;
        }
    }
    let same: Vec<Key> = gone
        .iter()
        .filter(|(key, oid)| added.get(*key) == Some(oid))
        .map(|(key, _)| *key)
        .collect();
    for key in same {
        gone.remove(&key);
        added.remove(&key);
    }
    Ok((gone, added))
}

impl Item {
    fn name(&self) -> &[u8] {
        match self {
            Self::Piece(key, _) => key,
            Self::Digit(digit, _) => std::slice::from_ref(digit),
        }
    }
}

/// Parse an item as a subtree of the pieces with this digit; `None` if it is not one.
fn digit(item: &TreeItem<'_>) -> Option<Item> {
    match item.name {
        [digit] if item.is_tree => Some(Item::Digit(*digit, item.oid)),
        _ => None,
    }
}

fn longer(prefix: &[u8], digit: u8) -> Vec<u8> {
    [prefix, &[digit]].concat()
}
