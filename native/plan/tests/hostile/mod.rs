//! Checks of parsers with hostile bytes: any input gives a value or an error of this crate within
//! the budget, and an accepted value holds what its type promises.
//!
//! Used by the fuzzers (`native/fuzz`) and by the test that repeats their inputs.

mod amending;
mod filters;
mod listing_hashes;
#[path = "../../../format/tests/model/mod.rs"]
mod model;
mod orders;

use std::collections::BTreeMap;

use huai_export::change_list::{ChangeList, Spelling};
use huai_format::content::block_index;
use huai_format::content::block_index::{BYTES_OF_BLOCK, BlockIndex};
use huai_format::content::bundle::Head;
use huai_format::diff::{Comparison, Sink};
use huai_format::entries::{Entry, Leaves, decode_directory, has_leaf};
use huai_format::limits::BUNDLED_BYTES;
use huai_format::path::{RelPath, check_name, is_reserved, path_order};
use huai_format::proof::signature;
use huai_format::proof::signature::{Ed25519Key, Signer};
use huai_format::shared::Shared;
use huai_format::snapshots::{EntryLimit, Manifest, ObjectReader, Snapshot, Walk, piece_start};
use huai_format::walks::check_hardlinks;
use huai_git::budget::Budget;
use huai_git::cursor::Cursor;
use huai_git::delta::Delta;
use huai_git::error::{Error, Result};
use huai_git::index::Index;
use huai_git::inflate::Inflater;
use huai_git::object::{Kind, Object};
use huai_git::oid::{Checksum, OID_BYTES, Oid};
use huai_git::resolve::{LocalObjects, Room, resolve};
use huai_git::tree::decode_tree;
use huai_git::window::Window;

const ENTRIES: u64 = 10_000;
const WORK: u64 = 1 << 22;
const MADE: usize = 1 << 20;

/// The name of a target, and its function for one input.
pub(crate) type Target = (&'static str, fn(&[u8]));

/// All targets; `native/fuzz` has a program for each.
pub(crate) const TARGETS: [Target; 16] = [
    ("amend", amending::amending),
    ("block_index", block_index),
    ("bundle", bundle),
    ("changes", changes),
    ("delta", delta),
    ("filter", filter),
    ("index", index),
    ("inflate", inflate),
    ("line", line),
    ("listing_hashes", listing_hashes::listing_hashes),
    ("manifest", manifest),
    ("order", order),
    ("pack", pack),
    ("signature", signature),
    ("snapshot", snapshot),
    ("tree", tree),
];

/// Check that a bundle that arrives in two parts has the records of the whole one.
fn bundle(data: &[u8]) {
    let mut all_records = Cursor::new(data);
    let middle = data
        .first()
        .map_or(0, |&at| usize::from(at).min(data.len()));
    let (first, _) = data.split_at(middle);
    let mut part = Cursor::new(first);
    while let Ok(Some((head, content))) = Head::read_from(&mut all_records) {
        let size = match head {
            Head::File { size, .. } => size,
            _ => 0,
        };
        assert!(size <= BUNDLED_BYTES);
        assert_eq!(content.len(), size as usize);
        if let Ok(Some(record)) = Head::read_from(&mut part) {
            assert_eq!(record, (head, content));
        }
    }
}

/// Split at the first blank line.
fn halves(data: &[u8]) -> (&[u8], &[u8]) {
    let middle = data.windows(2).position(|pair| pair == b"\n\n");
    match middle {
        Some(middle) => (&data[..=middle], &data[middle + 2..]),
        None => (data, b""),
    }
}

/// Check that `decode` accepts an index just if its digest matches, for an input of a size, a
/// digest, and a possible index.
pub(crate) fn block_index(data: &[u8]) {
    let Some((size, rest)) = data.split_first_chunk::<8>() else {
        return;
    };
    let Some((digest, bytes)) = rest.split_first_chunk::<32>() else {
        return;
    };
    let size = u64::from_be_bytes(*size);
    assert!(block_index::length(size).div_ceil(BYTES_OF_BLOCK as u64) <= 1 << 20);
    let read = BlockIndex::read(bytes, size);
    let proved = BlockIndex::decode(bytes, size, digest);
    assert!(proved.is_err() || read.is_ok());
    if let Ok(index) = read {
        assert_eq!(index.encode(), bytes);
        assert_eq!(proved.is_ok(), index.digest() == *digest);
        assert_eq!(index.unknown_bytes(&index.sources(Some(&index))), 0);
        let last = index.blocks().len() - 1;
        assert_eq!(index.range(last).end, size);
        assert!(!index.range(last).is_empty());
    }
}

/// Check that a list of changed paths gives the same whatever its parts, and valid paths in order,
/// for an input of the spelling, the size of the parts, and the list.
pub(crate) fn changes(data: &[u8]) {
    let Some(([spelling, piece], list)) = data.split_first_chunk::<2>() else {
        return;
    };
    let spellings = [
        "auto",
        "lines",
        "nul",
        "itemized",
        "names",
        "zfs-diff",
        "btrfs-dump",
    ];
    let spelling = Spelling::parse(spellings[usize::from(*spelling) % spellings.len()]).unwrap();
    let read = |piece: usize| {
        let mut read = ChangeList::new(&[b"/srv/mirror/".to_vec()]);
        read.begin_source(spelling);
        // The byte that ends a path is detected in the first part.
        let (first, rest) = list.split_at(list.len().min(64));
        read.feed(first);
        rest.chunks(piece).for_each(|part| read.feed(part));
        read.end_source();
        let refused = read.refused().0;
        (refused, read.is_cut(), read.into_touched())
    };
    let (refused, is_cut, touched) = read(usize::from(*piece) + 1);
    assert_eq!(
        (refused, is_cut, &touched),
        (read(1 << 20).0, is_cut, &read(1 << 20).2)
    );
    for each in &touched {
        let names = each.path.as_bytes().split(|&byte| byte == b'/');
        for name in names.filter(|_| !each.path.is_root()) {
            assert!(check_name(name).is_ok() || is_reserved(name), "{each:?}");
        }
    }
    assert!(touched.is_sorted_by(|one, other| {
        path_order(one.path.as_bytes(), other.path.as_bytes()).is_lt()
    }));
}

/// Check a filter, for an input of its rules, then paths; see `filters::filter`.
pub(crate) fn filter(data: &[u8]) {
    let (rules, paths) = halves(data);
    filters::filter(rules, paths);
}

/// Check an order, for an input of publish rules, then paths of files; see `orders::order`.
fn order(data: &[u8]) {
    let (rules, paths) = halves(data);
    orders::order(rules, paths);
}

/// Check that decoded leaves are sorted, valid and found by name, for an input of lines and
/// digests; the lines are also read as the attributes of a directory.
pub(crate) fn line(data: &[u8]) {
    let (text, digests) = halves(data);
    let root = RelPath::root();
    let _ = decode_directory(&root, text);
    let _ = has_leaf(text, digests);
    let Ok(entries) = Leaves::new(&root, text, digests).collect::<Result<Vec<_>>>() else {
        return;
    };
    for entry in &entries {
        assert!(check_name(&entry.name).is_ok(), "{entry:?}");
        assert!(has_leaf(text, &entry.name).unwrap(), "{entry:?}");
    }
    assert!(entries.is_sorted_by(|one, other| one.name < other.name));
}

/// Check that a decoded manifest claims no more entries or bytes than it has, for an input of its
/// text and digest column.
pub(crate) fn manifest(data: &[u8]) {
    let (text, digests) = halves(data);
    let _ = piece_start(text);
    let shared = |bytes: &[u8]| Shared::from(bytes.to_vec());
    if let Ok(manifest) = Manifest::decode(&shared(text), &shared(digests)) {
        assert!(manifest.entries() <= text.len());
        assert!(manifest.size() <= data.len() + digests.len() + 1);
    }
}

/// Check that a signature proves one message, and that keys are read as they are written, for an
/// input of a message and a possible signature.
pub(crate) fn signature(data: &[u8]) {
    let (message, armored) = halves(data);
    if let Ok(key) = signature::verify("git", message, armored) {
        assert!(signature::verify("git", &[message, b"."].concat(), armored).is_err());
        assert!(signature::verify("file", message, armored).is_err());
        assert_eq!(Ed25519Key::parse(&key.to_string()).unwrap(), key);
    }
    if let Some(key) = std::str::from_utf8(data)
        .ok()
        .and_then(|it| Ed25519Key::parse(it).ok())
    {
        assert_eq!(Ed25519Key::parse(&key.to_string()).unwrap(), key);
    }
    if let Ok(signer) = Signer::parse(data) {
        let armored_signature = signer.sign("git", data).unwrap();
        let key = signature::verify("git", data, armored_signature.as_bytes()).unwrap();
        assert_eq!(key, signer.public().unwrap());
    }
}

/// Check that a decoded git tree has no more names than bytes.
pub(crate) fn tree(data: &[u8]) {
    let Ok(items) = decode_tree(data) else { return };
    let size: usize = items.iter().map(|item| item.name.len()).sum();
    assert!(size + items.len() * OID_BYTES <= data.len());
}

/// Check that a delta makes the size that it states, for an input of the delta, after a byte for
/// its length, and its base.
pub(crate) fn delta(data: &[u8]) {
    let Some((&size, rest)) = data.split_first() else {
        return;
    };
    let (steps, base) = rest.split_at(rest.len().min(size.into()));
    let Ok(delta) = Delta::parse(steps) else {
        return;
    };
    if delta.size() > MADE {
        return;
    }
    let mut result = Vec::new();
    let is_ok = delta.apply(base, &mut result).is_ok();
    assert!(result.len() <= delta.size());
    assert!(!is_ok || result.len() == delta.size());
}

/// Check that inflating gives the stated size, for an input of that size in two bytes, and a zlib
/// stream.
pub(crate) fn inflate(data: &[u8]) {
    let Some((size, packed)) = data.split_first_chunk::<2>() else {
        return;
    };
    let size = usize::from(u16::from_le_bytes(*size));
    let mut window = Window::new(packed);
    window.seek(0, packed.len() as u64);
    let mut result = Vec::new();
    if Inflater::default()
        .inflate(&mut window, size, &mut result)
        .is_ok()
    {
        assert_eq!(result.len(), size);
        assert!(window.at() <= packed.len() as u64);
    }
}

/// Check that the index entries of a resolved pack are its own, for an input whose checksum is
/// corrected, as a hostile sender would.
pub(crate) fn pack(data: &[u8]) {
    let pack = sealed(data);
    let room = Room {
        held: 1 << 20,
        naming: 1 << 16,
    };
    let go_on = || false;
    let resolved = resolve(
        &pack[..],
        &mut OneBase,
        room,
        &mut Budget::new(WORK, &go_on),
    );
    if let Ok(objects) = resolved {
        for place in objects.index_entries() {
            assert!(objects.contains(&place.oid));
            assert!(place.offset < data.len() as u64);
        }
    }
}

/// Append the correct checksum.
fn sealed(data: &[u8]) -> Vec<u8> {
    let mut sum = Checksum::default();
    sum.update(data);
    [data, &sum.finish()].concat()
}

/// The base of thin packs.
const BASE: &[u8] = b"a line of text, and another one";

/// A repository of one blob, `BASE`.
struct OneBase;

impl LocalObjects for OneBase {
    fn find(&mut self, oid: &Oid) -> Result<Option<Object>> {
        let (kind, content) = (Kind::Blob, BASE.to_vec());
        Ok((*oid == Oid::of(kind, BASE)?).then_some(Object { kind, content }))
    }
}

/// Check that an index returns no entry of another id; searches for parts of the input.
pub(crate) fn index(data: &[u8]) {
    let Ok(mut index) = Index::open(data) else {
        return;
    };
    for oid in data.windows(OID_BYTES).step_by(4).filter_map(Oid::parse) {
        if let Ok(Some(place)) = index.find(&oid) {
            assert_eq!(place.oid, oid);
        }
    }
    let _ = (index.check(), index.order());
}

/// Check that a walk, a check of hardlinks and a comparison end, for an input of objects, each
/// after its size in two bytes.  The first two are the trees of the snapshots; the first byte of an
/// id is the number of its object.
pub(crate) fn snapshot(data: &[u8]) {
    let objects = Numbered::cut(data);
    let root = |number: u8| Oid::new([number; OID_BYTES]);
    let at = |number| Snapshot {
        reader: &objects,
        tree: root(number),
    };
    let mut walk = Walk::new(&at(0), EntryLimit::new(ENTRIES));
    while let Ok(Some(listing)) = walk.next(&at(0)) {
        let leaves = Leaves::new(&listing.path, &listing.leaves, &listing.digests);
        if leaves.into_iter().any(|entry| entry.is_err()) {
            break;
        }
    }
    let _ = check_hardlinks(&at(0), ENTRIES);
    let mut comparison = Comparison::new((at(0), ENTRIES), (at(1), ENTRIES));
    let mut paths = MetPaths::default();
    while let Ok(false) = comparison.advance(&mut paths) {
        paths.full = false;
    }
}

/// Objects by number; of an id only the first byte counts.
struct Numbered(BTreeMap<u8, Vec<u8>>);

impl Numbered {
    /// Cut the input into at most 256 objects, each after its size in two bytes.
    fn cut(mut data: &[u8]) -> Self {
        let mut objects = BTreeMap::new();
        while let Some((size, rest)) = data.split_first_chunk::<2>() {
            let size = usize::from(u16::from_le_bytes(*size)).min(rest.len());
            let (object, after) = rest.split_at(size);
            let Ok(number) = u8::try_from(objects.len()) else {
                break;
            };
            objects.insert(number, object.to_vec());
            data = after;
        }
        Self(objects)
    }
}

impl ObjectReader for &Numbered {
    fn read(&self, oid: &Oid, _: Kind) -> Result<Vec<u8>> {
        let object = self.0.get(&oid.first());
        object
            .cloned()
            .ok_or_else(|| Error::Lent("not here".into()))
    }
}

/// A sink that is full after each change.
#[derive(Default)]
struct MetPaths {
    full: bool,
}

impl Sink for MetPaths {
    fn is_full(&self) -> bool {
        self.full
    }

    fn change(&mut self, _: &RelPath, old: Option<&Entry<'_>>, new: Option<&Entry<'_>>) {
        assert!(old.is_some() || new.is_some());
        self.full = true;
    }

    fn moved(&mut self, old: &RelPath, new: &RelPath) {
        assert_ne!(old, new);
    }
}
