//! The listing hash of an object (FORMAT.md, "Listing hash"): its git id, if git hashed by BLAKE3.
//!
//! What was hashed once is known by its git id from then on, so the hash of a tree costs what
//! changed in it: the objects that are new, and the known hashes of what their trees name.
//! A known hash is of the object that is here under that id, so a tree that names another object by
//! the same id, on the machine of whoever signed, has another hash there.

use std::collections::HashMap;

use blake3::Hasher;

use crate::crc::Crc32;
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::git::object::Kind;
use crate::git::oid::{OID_BYTES, Oid};
use crate::git::tree::{TreeItem, decode_tree, encode_items};
use crate::objects::ObjectReader;

/// How many bytes a hash has.
pub const HASH_BYTES: usize = 32;
const CHECKSUM_BYTES: usize = 4;
/// How many bytes `Known` writes for an object: id, hash, and the CRC-32 of both.
pub const RECORD_BYTES: usize = OID_BYTES + HASH_BYTES + CHECKSUM_BYTES;

/// A listing hash.
pub type Hash = [u8; HASH_BYTES];

/// The hashes of objects that are here.
#[derive(Debug, Default)]
pub struct Known {
    hashes: HashMap<Oid, Hash>,
    added: Vec<u8>,
    sound: usize,
}

impl Known {
    /// What `added` gave before, one after the other, up to what a crash left behind.
    pub fn read(records: &[u8]) -> Self {
        let mut rest = Cursor::new(records);
        let mut known = Self {
            hashes: HashMap::with_capacity(records.len() / RECORD_BYTES),
            ..Self::default()
        };
        while let Some((oid, hash)) = take_record(&mut rest) {
            known.hashes.insert(oid, hash);
            known.sound = known.sound.saturating_add(RECORD_BYTES);
        }
        known
    }

    /// How many bytes of what was read are sound records, from the first on.
    pub fn sound(&self) -> usize {
        self.sound
    }

    /// Records of what was hashed since.
    pub fn added(&self) -> &[u8] {
        &self.added
    }

    /// The hash of a tree; hashes what is not known of it.
    ///
    /// `stopped` says whether the call has to end, and is asked for each tree.
    pub fn of_tree(
        &mut self,
        tree: Oid,
        reader: &impl ObjectReader,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Hash> {
        // Not by recursion: whoever writes a tree says how deep it is.
        let mut pending = vec![tree];
        while let Some(&oid) = pending.last() {
            if self.hashes.contains_key(&oid) {
                pending.pop();
                continue;
            }
            if stopped() {
                return Err(Error::Stopped);
            }
            let text = reader.read(&oid, Kind::Tree)?;
            let items = decode_tree(&text).map_err(|error| error.within(oid))?;
            let before = pending.len();
            let trees = items.iter().filter(|item| item.is_tree);
            pending.extend(
                trees
                    .map(|item| item.oid)
                    .filter(|oid| !self.hashes.contains_key(oid)),
            );
            if pending.len() == before {
                let hash = self.of_items(&items, reader)?;
                self.keep(oid, hash);
                pending.pop();
            }
        }
        self.hash(&tree)
    }

    /// The hash of a tree with these items; those of the trees among them are known.
    fn of_items(&mut self, items: &[TreeItem<'_>], reader: &impl ObjectReader) -> Result<Hash> {
        let mut named = Vec::with_capacity(items.len());
        for item in items {
            if !item.is_tree && !self.hashes.contains_key(&item.oid) {
                let content = reader.read(&item.oid, Kind::Blob)?;
                self.keep(item.oid, of_object(Kind::Blob, &content));
            }
            named.push((item.name, self.hash(&item.oid)?, item.is_tree));
        }
        let items = named
            .iter()
            .map(|(name, hash, is_tree)| (*name, &hash[..], *is_tree));
        Ok(of_object(Kind::Tree, &encode_items(items)))
    }

    fn hash(&self, oid: &Oid) -> Result<Hash> {
        let found = self.hashes.get(oid).copied();
        found.ok_or_else(|| Error::new("an object without a hash").within(oid))
    }

    fn keep(&mut self, oid: Oid, hash: Hash) {
        self.added.extend_from_slice(oid.as_bytes());
        self.added.extend_from_slice(&hash);
        let checksum = checksum(&oid, &hash).to_be_bytes();
        self.added.extend_from_slice(&checksum);
        self.hashes.insert(oid, hash);
    }
}

fn take_record(from: &mut Cursor<'_>) -> Option<(Oid, Hash)> {
    let (oid, hash) = (Oid::new(from.array()?), from.array()?);
    (from.u32()? == checksum(&oid, &hash)).then_some((oid, hash))
}

fn checksum(oid: &Oid, hash: &Hash) -> u32 {
    let mut sum = Crc32::default();
    sum.update(oid.as_bytes());
    sum.update(hash);
    sum.value()
}

fn of_object(kind: Kind, content: &[u8]) -> Hash {
    let mut hasher = Hasher::new();
    hasher.update(kind.name().as_bytes());
    hasher.update(format!(" {}\0", content.len()).as_bytes());
    hasher.update(content);
    hasher.finalize().into()
}

#[cfg(test)]
#[allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "a test that goes too far has failed"
)]
mod tests {
    use super::*;
    use crate::git::tree::encode_tree;
    use std::cell::Cell;

    #[derive(Default)]
    struct Memory {
        objects: HashMap<Oid, Vec<u8>>,
        reads: Cell<usize>,
    }

    impl Memory {
        fn put(&mut self, kind: Kind, content: &[u8]) -> Oid {
            let oid = Oid::of_own(kind, content);
            self.objects.insert(oid, content.to_vec());
            oid
        }

        fn tree(&mut self, items: &[(&[u8], Oid, bool)]) -> Oid {
            let item = |&(name, oid, is_tree)| TreeItem { name, oid, is_tree };
            self.put(Kind::Tree, &encode_tree(items.iter().map(item).collect()))
        }
    }

    impl ObjectReader for Memory {
        fn read(&self, oid: &Oid, _: Kind) -> Result<Vec<u8>> {
            self.reads.set(self.reads.get() + 1);
            let found = self.objects.get(oid).cloned();
            found.ok_or_else(|| Error::Lent("not here".into()))
        }
    }

    const GO_ON: &dyn Fn() -> bool = &|| false;

    #[test]
    fn what_is_known_is_not_read() {
        let mut memory = Memory::default();
        let same: Vec<_> = (0..50_u8).map(|n| memory.put(Kind::Blob, &[n])).collect();
        let names: Vec<_> = (0..50_u8).map(|n| format!("{n:02}")).collect();
        let items = names.iter().map(String::as_bytes).zip(&same);
        let items: Vec<_> = items.map(|(name, oid)| (name, *oid, false)).collect();
        let below = memory.tree(&items);
        let one = memory.put(Kind::Blob, b"one");
        let first = memory.tree(&[(b"a", one, false), (b"b", below, true)]);
        let mut known = Known::default();
        let hash = known.of_tree(first, &memory, GO_ON).unwrap();
        let mut again = Known::read(known.added());
        let other = memory.put(Kind::Blob, b"other");
        let second = memory.tree(&[(b"a", other, false), (b"b", below, true)]);
        memory.reads.set(0);
        assert_eq!(again.of_tree(first, &memory, GO_ON).unwrap(), hash);
        assert_eq!(memory.reads.get(), 0);
        let changed = again.of_tree(second, &memory, GO_ON).unwrap();
        assert_eq!(memory.reads.get(), 2); // the tree, the blob
        assert_ne!(changed, hash);
        let fresh = Known::default().of_tree(second, &memory, GO_ON).unwrap();
        assert_eq!(changed, fresh);
    }

    #[test]
    fn an_object_with_the_id_of_another_has_another_hash() {
        let mut memory = Memory::default();
        let blob = memory.put(Kind::Blob, b"honest");
        let tree = memory.tree(&[(b"a", blob, false)]);
        let honest = Known::default().of_tree(tree, &memory, GO_ON).unwrap();
        memory.objects.insert(blob, b"collides".to_vec());
        let other = Known::default().of_tree(tree, &memory, GO_ON).unwrap();
        assert_ne!(honest, other);
    }

    #[test]
    fn what_a_crash_left_counts_for_nothing() {
        let mut memory = Memory::default();
        let one = memory.put(Kind::Blob, b"one");
        let tree = memory.tree(&[(b"a", one, false)]);
        let mut known = Known::default();
        known.of_tree(tree, &memory, GO_ON).unwrap();
        let records = known.added().to_vec();
        assert_eq!(Known::read(&records).sound(), records.len());
        assert_eq!(
            Known::read(&records[..records.len() - 1]).sound(),
            RECORD_BYTES
        );
        for place in 0..records.len() {
            let mut torn = records.clone();
            torn[place..].fill(0);
            assert_eq!(
                Known::read(&torn).sound(),
                place / RECORD_BYTES * RECORD_BYTES
            );
        }
    }

    #[test]
    fn depth_costs_no_stack() {
        let mut memory = Memory::default();
        let mut tree = memory.tree(&[]);
        for _ in 0..100_000 {
            tree = memory.tree(&[(b"t", tree, true)]);
        }
        assert!(Known::default().of_tree(tree, &memory, GO_ON).is_ok());
        assert!(Known::default().of_tree(tree, &memory, &|| true).is_err());
    }
}
