//! What is done with hostile bytes: any give a value or an error of ours, within the budget, and
//! what is accepted holds what its type promises.
//!
//! Shared by the fuzzers (`native/fuzz`) and by the test that repeats their inputs.

mod amending;
mod filters;
mod listing_hashes;
#[path = "../model/mod.rs"]
mod model;
mod orders;

use std::collections::BTreeMap;

use huai_format::block_index::{self, BYTES_OF_BLOCK, BlockIndex};
use huai_format::budget::Budget;
use huai_format::change_list::{ChangeList, Spelling};
use huai_format::diff::Comparison;
use huai_format::entry::Entry;
use huai_format::entry_limit::EntryLimit;
use huai_format::error::{Error, Result};
use huai_format::git::delta::Delta;
use huai_format::git::index::Index;
use huai_format::git::inflate::Inflater;
use huai_format::git::object::{Kind, Object};
use huai_format::git::oid::{Checksum, OID_BYTES, Oid};
use huai_format::git::resolve::{Bases, Outcome, Room, resolve};
use huai_format::git::tree::decode_tree;
use huai_format::git::window::Window;
use huai_format::hardlink::check_hardlinks;
use huai_format::level::Walk;
use huai_format::line::{Leaves, decode_directory, has_leaf};
use huai_format::listing_diff::Sink;
use huai_format::manifest::{Manifest, piece_start};
use huai_format::objects::ObjectReader;
use huai_format::path::{RelPath, check_name, is_reserved, path_order};
use huai_format::shared::Shared;
use huai_format::signature::{self, Key, Signer};
use huai_format::snapshot::Snapshot;

const ENTRIES: u64 = 10_000;
const WORK: u64 = 1 << 22;
const MADE: usize = 1 << 20;

/// A target, and what it does with one input.
pub(crate) type Target = (&'static str, fn(&[u8]));

/// Every one; `native/fuzz` has a program for each.
pub(crate) const TARGETS: [Target; 15] = [
    ("amend", amending::amending),
    ("block_index", block_index),
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

/// The part before the first blank line, and the rest.
fn halves(data: &[u8]) -> (&[u8], &[u8]) {
    let middle = data.windows(2).position(|pair| pair == b"\n\n");
    match middle {
        Some(middle) => (&data[..=middle], &data[middle + 2..]),
        None => (data, b""),
    }
}

/// A size, a digest, and what may be the index of that file; and of the file that has this index.
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
        assert_eq!(index.unknown(&index.places(Some(&index))), 0);
        let last = index.blocks().len() - 1;
        assert_eq!(index.range(last).end, size);
        assert!(!index.range(last).is_empty());
    }
}

/// A list of changed paths: its spelling, the size of the pieces in which it comes, and the list.
pub(crate) fn changes(data: &[u8]) {
    let Some(([spelling, piece], list)) = data.split_first_chunk::<2>() else {
        return;
    };
    let spellings = ["auto", "lines", "nul", "itemized", "names"];
    let spelling = Spelling::parse(spellings[usize::from(*spelling) % spellings.len()]).unwrap();
    let read = |piece: usize| {
        let mut read = ChangeList::new(b"/srv/mirror/");
        read.begin(spelling);
        // What ends a path is seen from the first piece.
        let (first, rest) = list.split_at(list.len().min(64));
        read.feed(first);
        rest.chunks(piece).for_each(|part| read.feed(part));
        read.end();
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

/// Rules of a filter, and paths that they decide about.
pub(crate) fn filter(data: &[u8]) {
    let (rules, paths) = halves(data);
    filters::filter(rules, paths);
}

/// Publish rules, and paths of files that they decide about.
fn order(data: &[u8]) {
    let (rules, paths) = halves(data);
    orders::order(rules, paths);
}

/// Lines of leaves and their digests; the same lines as those of a directory itself.
pub(crate) fn line(data: &[u8]) {
    let (text, digests) = halves(data);
    let here = RelPath::root();
    let _ = decode_directory(&here, text);
    let _ = has_leaf(text, digests);
    let Ok(entries) = Leaves::new(&here, text, digests).collect::<Result<Vec<_>>>() else {
        return;
    };
    for entry in &entries {
        assert!(check_name(&entry.name).is_ok(), "{entry:?}");
        assert!(has_leaf(text, &entry.name).unwrap(), "{entry:?}");
    }
    assert!(entries.is_sorted_by(|one, other| one.name < other.name));
}

/// A manifest and its digest column.
pub(crate) fn manifest(data: &[u8]) {
    let (text, digests) = halves(data);
    let _ = piece_start(text);
    let shared = |bytes: &[u8]| Shared::from(bytes.to_vec());
    if let Ok(manifest) = Manifest::decode(&shared(text), &shared(digests)) {
        assert!(manifest.entries() <= text.len());
        assert!(manifest.size() <= data.len() + digests.len() + 1);
    }
}

/// A message and what may be its signature; the same bytes as keys.
pub(crate) fn signature(data: &[u8]) {
    let (message, armored) = halves(data);
    if let Ok(key) = signature::verify("git", message, armored) {
        assert!(signature::verify("git", &[message, b"."].concat(), armored).is_err());
        assert!(signature::verify("file", message, armored).is_err());
        assert_eq!(Key::parse(&key.to_string()).unwrap(), key);
    }
    if let Some(key) = std::str::from_utf8(data)
        .ok()
        .and_then(|it| Key::parse(it).ok())
    {
        assert_eq!(Key::parse(&key.to_string()).unwrap(), key);
    }
    if let Ok(signer) = Signer::parse(data) {
        let made = signer.sign("git", data).unwrap();
        let key = signature::verify("git", data, made.as_bytes()).unwrap();
        assert_eq!(key, signer.public().unwrap());
    }
}

/// A git tree.
pub(crate) fn tree(data: &[u8]) {
    let Ok(items) = decode_tree(data) else { return };
    let size: usize = items.iter().map(|item| item.name.len()).sum();
    assert!(size + items.len() * OID_BYTES <= data.len());
}

/// A delta, and the base that it is for: what stands after the delta's size, a byte.
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
    let mut made = Vec::new();
    let whole = delta.apply(base, &mut made).is_ok();
    assert!(made.len() <= delta.size());
    assert!(!whole || made.len() == delta.size());
}

/// A zlib stream of the size that its first two bytes say.
pub(crate) fn inflate(data: &[u8]) {
    let Some((size, packed)) = data.split_first_chunk::<2>() else {
        return;
    };
    let size = usize::from(u16::from_le_bytes(*size));
    let mut window = Window::new(packed);
    window.seek(0, packed.len() as u64);
    let mut made = Vec::new();
    if Inflater::default()
        .inflate(&mut window, size, &mut made)
        .is_ok()
    {
        assert_eq!(made.len(), size);
        assert!(window.at() <= packed.len() as u64);
    }
}

/// The records of a pack; its checksum is made right, as a hostile sender would.
pub(crate) fn pack(data: &[u8]) {
    let pack = sealed(data);
    let room = Room {
        held: 1 << 20,
        naming: 1 << 16,
    };
    let go_on = || false;
    let resolved = resolve(&pack[..], &mut Here, room, &mut Budget::new(WORK, &go_on));
    if let Ok(Outcome::Whole(objects)) = resolved {
        for place in objects.places() {
            assert!(objects.contains(&place.oid));
            assert!(place.offset < data.len() as u64);
        }
    }
}

/// With the checksum that belongs at the end.
fn sealed(data: &[u8]) -> Vec<u8> {
    let mut sum = Checksum::default();
    sum.update(data);
    [data, &sum.finish()].concat()
}

/// What a thin pack may be based on.
const BASE: &[u8] = b"a line of text, and another one";

struct Here;

impl Bases for Here {
    fn find(&mut self, oid: &Oid) -> Result<Option<Object>> {
        let (kind, content) = (Kind::Blob, BASE.to_vec());
        Ok((*oid == Oid::of(kind, BASE)?).then_some(Object { kind, content }))
    }
}

/// The index of a pack.
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

/// Two snapshots over the same objects, each after its size in two bytes; an id stands for the
/// object with the number of its first byte.
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
    let mut seen = Seen::default();
    while let Ok(false) = comparison.advance(&mut seen) {
        seen.full = false;
    }
}

struct Numbered(BTreeMap<u8, Vec<u8>>);

impl Numbered {
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
        let found = self.0.get(&oid.first());
        found.cloned().ok_or_else(|| Error::Lent("not here".into()))
    }
}

#[derive(Default)]
struct Seen {
    full: bool,
}

impl Sink for Seen {
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
