//! Checks records of listing hashes after a crash: sound ones are right, and the rest is dropped.

use huai_format::proof::listing_hash::{HASH_BYTES, ListingHashes, RECORD_BYTES};
use huai_format::snapshots::ObjectWriter;
use huai_git::error::Result;
use huai_git::object::Kind;
use huai_git::oid::Oid;
use huai_git::tree::{TreeItem, encode_tree};

use super::model::Objects;

/// Check that damaged records of hashes are dropped, and their hashes computed again, for an input
/// of the number of trees and blobs, then damages of four bytes each; the same bytes are read as
/// records too.
pub(crate) fn listing_hashes(data: &[u8]) {
    let sound = ListingHashes::read(data).sound();
    assert!(sound <= data.len() && sound % RECORD_BYTES == 0);
    let Some((count, damages)) = data.split_first() else {
        return;
    };
    let objects = Objects::default();
    let tree = tree_of(count % 16, &objects).unwrap();
    let mut complete = ListingHashes::default();
    let hash = hash_of(&mut complete, tree, &objects);
    let mut records = complete.added().to_vec();
    for damage in damages.chunks_exact(4).take(8) {
        hurt(&mut records, damage);
    }
    let mut stored = ListingHashes::read(&records);
    assert_eq!(hash_of(&mut stored, tree, &objects), hash);
    // Records appended after the sound ones are found by the next run.
    records.truncate(stored.sound());
    records.extend_from_slice(stored.added());
    let mut stored = ListingHashes::read(&records);
    assert_eq!(stored.sound(), records.len());
    assert_eq!(hash_of(&mut stored, tree, &objects), hash);
    assert!(stored.added().is_empty());
}

fn hash_of(known: &mut ListingHashes, tree: Oid, objects: &Objects) -> [u8; HASH_BYTES] {
    known.of_tree(tree, &objects, &|| false).unwrap()
}

/// Make nested trees, each with a blob.
fn tree_of(count: u8, mut objects: &Objects) -> Result<Oid> {
    let mut below = objects.write(Kind::Tree, b"")?;
    for number in 0..count {
        let blob = objects.write(Kind::Blob, &[number])?;
        let items = [(&b"a"[..], blob, false), (b"b", below, true)];
        let item = |(name, oid, is_tree)| TreeItem { name, oid, is_tree };
        below = objects.write(Kind::Tree, &encode_tree(items.map(item).into()))?;
    }
    Ok(below)
}

/// Cut the records, or overwrite some of them with zeros.
fn hurt(records: &mut Vec<u8>, damage: &[u8]) {
    let number = |at: usize| usize::from(u16::from_le_bytes([damage[at], damage[at + 1]]));
    let place = number(0) % (records.len() + 1);
    let length = number(2);
    if length == 0 {
        records.truncate(place);
    } else {
        let end = records.len().min(place + length);
        records[place..end].fill(0);
    }
}
