//! The listing hash of an object (FORMAT.md, "Listing hash"): its git id, if git hashed by BLAKE3.
//!
//! A hash is stored by the git id of its object, so the hash of a tree costs what changed in it:
//! the new objects, and the stored hashes of the objects that their trees name.
//! A stored hash is that of the object under that id in this repository.  If the signer's tree
//! names another object by the same id, the hashes differ.
//! A tree that is not here may have a stated hash: the hash of the tree that names it proves it.

use std::collections::HashMap;

use blake3::Hasher;
use huai_git::crc::Crc32;
use huai_git::cursor::Cursor;
use huai_git::error::{Error, Result};
use huai_git::object::Kind;
use huai_git::oid::{OID_BYTES, Oid};
use huai_git::tree::{TreeItem, decode_tree, encode_items};

use crate::snapshots::ObjectReader;

/// The length of a hash in bytes.
pub const HASH_BYTES: usize = 32;
const CHECKSUM_BYTES: usize = 4;
/// The length of a record of `ListingHashes`: id, hash, and the CRC-32 of both.
pub const RECORD_BYTES: usize = OID_BYTES + HASH_BYTES + CHECKSUM_BYTES;

/// A listing hash.
pub type Hash = [u8; HASH_BYTES];

/// The hashes of the objects of one repository.
#[derive(Debug, Default)]
pub struct ListingHashes {
    hashes: HashMap<Oid, Hash>,
    /// The hashes of trees that are not here.
    stated: HashMap<Oid, Hash>,
    added: Vec<u8>,
    sound: usize,
}

impl ListingHashes {
    /// Parse concatenated records, as `added` returns them, up to the first that is damaged.
    pub fn read(records: &[u8]) -> Self {
        let (hashes, sound) = read_records(records);
        Self {
            hashes,
            sound,
            ..Self::default()
        }
    }

    /// Return these hashes with those of trees that are not here, as concatenated records.
    #[must_use]
    pub fn with_stated(self, records: &[u8]) -> Self {
        let (stated, _) = read_records(records);
        Self { stated, ..self }
    }

    /// Return the record of an object, if its hash is stored.
    pub fn record(&self, oid: &Oid) -> Option<[u8; RECORD_BYTES]> {
        self.hashes.get(oid).map(|hash| record(oid, hash))
    }

    /// Return the length in bytes of the sound records that `read` got.
    pub fn sound(&self) -> usize {
        self.sound
    }

    /// Return the records of hashes that were computed since `read`.
    pub fn added(&self) -> &[u8] {
        &self.added
    }

    /// Return the hash of a tree; computes and stores missing hashes.  Fails if an object whose
    /// hash is missing cannot be read.
    ///
    /// `stopped` is called for each tree; if it returns true, the call fails with `Stopped`.
    pub fn of_tree(
        &mut self,
        tree: Oid,
        reader: &impl ObjectReader,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Hash> {
        // Not recursive: the writer of a tree decides its depth.
        let mut pending = vec![tree];
        while let Some(&oid) = pending.last() {
            if self.has(&oid) {
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
            pending.extend(trees.map(|item| item.oid).filter(|oid| !self.has(oid)));
            if pending.len() == before {
                let hash = self.of_items(&items, reader)?;
                self.keep(oid, hash);
                pending.pop();
            }
        }
        self.hash(&tree)
    }

    /// Compute the hash of a tree with these items, whose subtrees have one; stores those of its blobs.
    fn of_items(&mut self, items: &[TreeItem<'_>], reader: &impl ObjectReader) -> Result<Hash> {
        let mut items_by_hash = Vec::with_capacity(items.len());
        for item in items {
            if !item.is_tree && !self.has(&item.oid) {
                let content = reader.read(&item.oid, Kind::Blob)?;
                self.keep(item.oid, of_object(Kind::Blob, &content));
            }
            items_by_hash.push((item.name, self.hash(&item.oid)?, item.is_tree));
        }
        let items = items_by_hash
            .iter()
            .map(|(name, hash, is_tree)| (*name, &hash[..], *is_tree));
        Ok(of_object(Kind::Tree, &encode_items(items)))
    }

    fn has(&self, oid: &Oid) -> bool {
        self.hashes.contains_key(oid) || self.stated.contains_key(oid)
    }

    fn hash(&self, oid: &Oid) -> Result<Hash> {
        let stored = self.hashes.get(oid).or_else(|| self.stated.get(oid));
        stored
            .copied()
            .ok_or_else(|| Error::new("an object without a hash").within(oid))
    }

    /// Cache a hash, and append its record to those to be saved.
    fn keep(&mut self, oid: Oid, hash: Hash) {
        self.added.extend_from_slice(&record(&oid, &hash));
        self.hashes.insert(oid, hash);
    }
}

/// Parse concatenated records up to the first that is damaged; return the length of these too.
fn read_records(records: &[u8]) -> (HashMap<Oid, Hash>, usize) {
    let mut rest = Cursor::new(records);
    let mut hashes = HashMap::with_capacity(records.len() / RECORD_BYTES);
    let mut sound = 0_usize;
    while let Some((oid, hash)) = take_record(&mut rest) {
        hashes.insert(oid, hash);
        sound = sound.saturating_add(RECORD_BYTES);
    }
    (hashes, sound)
}

fn record(oid: &Oid, hash: &Hash) -> [u8; RECORD_BYTES] {
    let mut record = [0; RECORD_BYTES];
    let checksum = checksum(oid, hash).to_be_bytes();
    let parts = oid.as_bytes().iter().chain(hash).chain(&checksum);
    for (byte, part) in record.iter_mut().zip(parts) {
        *byte = *part;
    }
    record
}

/// Take a record, the id of an object and its hash; `None` if its checksum is wrong, or none is left.
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

/// Return BLAKE3 of git's header and the content of an object.
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
    use huai_git::tree::encode_tree;
    use std::cell::Cell;

    #[derive(Default)]
    struct Memory {
        objects: HashMap<Oid, Vec<u8>>,
        reads: Cell<usize>,
    }

    impl Memory {
        fn add(&mut self, kind: Kind, content: &[u8]) -> Oid {
            let oid = Oid::of_own(kind, content);
            self.objects.insert(oid, content.to_vec());
            oid
        }

        fn tree(&mut self, items: &[(&[u8], Oid, bool)]) -> Oid {
            let item = |&(name, oid, is_tree)| TreeItem { name, oid, is_tree };
            self.add(Kind::Tree, &encode_tree(items.iter().map(item).collect()))
        }
    }

    impl ObjectReader for Memory {
        fn read(&self, oid: &Oid, _: Kind) -> Result<Vec<u8>> {
            self.reads.set(self.reads.get() + 1);
            let object = self.objects.get(oid).cloned();
            object.ok_or_else(|| Error::Lent("not here".into()))
        }
    }

    const GO_ON: &dyn Fn() -> bool = &|| false;

    #[test]
    fn what_is_known_is_not_read() {
        let mut memory = Memory::default();
        let same: Vec<_> = (0..50_u8).map(|n| memory.add(Kind::Blob, &[n])).collect();
        let names: Vec<_> = (0..50_u8).map(|n| format!("{n:02}")).collect();
        let items = names.iter().map(String::as_bytes).zip(&same);
        let items: Vec<_> = items.map(|(name, oid)| (name, *oid, false)).collect();
        let below = memory.tree(&items);
        let one = memory.add(Kind::Blob, b"one");
        let first = memory.tree(&[(b"a", one, false), (b"b", below, true)]);
        let mut hashes = ListingHashes::default();
        let hash = hashes.of_tree(first, &memory, GO_ON).unwrap();
        let mut again = ListingHashes::read(hashes.added());
        let other = memory.add(Kind::Blob, b"other");
        let second = memory.tree(&[(b"a", other, false), (b"b", below, true)]);
        memory.reads.set(0);
        assert_eq!(again.of_tree(first, &memory, GO_ON).unwrap(), hash);
        assert_eq!(memory.reads.get(), 0);
        let changed = again.of_tree(second, &memory, GO_ON).unwrap();
        assert_eq!(memory.reads.get(), 2); // the tree, the blob
        assert_ne!(changed, hash);
        let fresh = ListingHashes::default()
            .of_tree(second, &memory, GO_ON)
            .unwrap();
        assert_eq!(changed, fresh);
    }

    #[test]
    fn an_object_with_the_id_of_another_has_another_hash() {
        let mut memory = Memory::default();
        let blob = memory.add(Kind::Blob, b"honest");
        let tree = memory.tree(&[(b"a", blob, false)]);
        let honest = ListingHashes::default()
            .of_tree(tree, &memory, GO_ON)
            .unwrap();
        memory.objects.insert(blob, b"collides".to_vec());
        let other = ListingHashes::default()
            .of_tree(tree, &memory, GO_ON)
            .unwrap();
        assert_ne!(honest, other);
    }

    #[test]
    fn a_tree_that_is_not_here_has_its_stated_hash() {
        let mut memory = Memory::default();
        let one = memory.add(Kind::Blob, b"one");
        let below = memory.tree(&[(b"a", one, false)]);
        let other = memory.tree(&[]);
        let tree = memory.tree(&[(b"a", below, true), (b"b", other, true)]);
        let mut complete = ListingHashes::default();
        let hash = complete.of_tree(tree, &memory, GO_ON).unwrap();
        let record = complete.record(&below).unwrap();
        let mut wrong = complete.record(&other).unwrap();
        wrong[..OID_BYTES].copy_from_slice(below.as_bytes());
        let checksum = checksum(&below, wrong[OID_BYTES..52].try_into().unwrap());
        wrong[52..].copy_from_slice(&checksum.to_be_bytes());
        memory.objects.remove(&below);
        memory.objects.remove(&one);
        let with = |records: &[u8]| {
            let mut part = ListingHashes::default().with_stated(records);
            let hash = part.of_tree(tree, &memory, GO_ON);
            assert_eq!(part.record(&below), None);
            hash
        };
        assert_eq!(with(&record).unwrap(), hash);
        assert_ne!(with(&wrong).unwrap(), hash);
        assert!(with(&record[1..]).is_err());
    }

    #[test]
    fn what_a_crash_left_counts_for_nothing() {
        let mut memory = Memory::default();
        let one = memory.add(Kind::Blob, b"one");
        let tree = memory.tree(&[(b"a", one, false)]);
        let mut hashes = ListingHashes::default();
        hashes.of_tree(tree, &memory, GO_ON).unwrap();
        let records = hashes.added().to_vec();
        assert_eq!(ListingHashes::read(&records).sound(), records.len());
        assert_eq!(
            ListingHashes::read(&records[..records.len() - 1]).sound(),
            RECORD_BYTES
        );
        for place in 0..records.len() {
            let mut torn = records.clone();
            torn[place..].fill(0);
            assert_eq!(
                ListingHashes::read(&torn).sound(),
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
        assert!(
            ListingHashes::default()
                .of_tree(tree, &memory, GO_ON)
                .is_ok()
        );
        assert!(
            ListingHashes::default()
                .of_tree(tree, &memory, &|| true)
                .is_err()
        );
    }
}
