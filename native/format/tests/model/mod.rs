//! A tree in memory, the changes to it, and the objects that describe it.
//!
//! Used by the test of amending and by the fuzzers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(dead_code, reason = "no test uses all of it")]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use huai_format::amend::Amendment;
use huai_format::limits::PIECE_LINES;
use huai_format::path::{basename, parent, path_order};
use huai_format::snapshots::{ObjectReader, ObjectWriter};
use huai_format::write::{Layout, ListingText, Totals};
use huai_git::crc::crc32;
use huai_git::error::{Error, Result};
use huai_git::object::Kind;
use huai_git::oid::Oid;

pub(crate) type Path = Vec<u8>;

/// Objects in memory, with counts of all writes and of reads of missing objects.
#[derive(Default)]
pub(crate) struct Objects {
    pub(crate) held: RefCell<HashMap<Oid, (Kind, Vec<u8>)>>,
    pub(crate) written: RefCell<usize>,
    pub(crate) missed: RefCell<usize>,
}

impl ObjectReader for &Objects {
    fn read(&self, oid: &Oid, kind: Kind) -> Result<Vec<u8>> {
        match self.held.borrow().get(oid) {
            Some((found, data)) if *found == kind => Ok(data.clone()),
            _ => {
                *self.missed.borrow_mut() += 1;
                Err(Error::Lent("not here".into()))
            }
        }
    }

    fn read_head(&self, oid: &Oid, kind: Kind, size: usize) -> Result<Vec<u8>> {
        let mut content = self.read(oid, kind)?;
        content.truncate(size);
        Ok(content)
    }
}

impl ObjectWriter for &Objects {
    fn write(&mut self, kind: Kind, content: &[u8]) -> Result<Oid> {
        *self.written.borrow_mut() += 1;
        let oid = Oid::of(kind, content)?;
        let new = (kind, content.to_vec());
        self.held.borrow_mut().insert(oid, new);
        Ok(oid)
    }
}

/// The entries of a tree: leaves by name, each with a number in place of its attributes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    pub(crate) directories: BTreeMap<Path, BTreeMap<Path, u32>>,
}

/// A change; numbers select the place: the directory, then the name in it.  `Swap` replaces a
/// directory by a leaf, `Thin` removes most leaves, and `Nothing` only touches a path.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Change {
    Write(usize, usize, u32),
    Remove(usize, usize),
    Make(usize, usize, usize),
    RemoveDirectory(usize),
    Swap(usize, usize),
    Thin(usize, usize),
    Nothing(usize, usize),
}

impl Model {
    fn directory(&self, number: usize) -> Path {
        let place = number % self.directories.len();
        self.directories.keys().nth(place).unwrap().clone()
    }

    /// Return the path of a leaf of the directory `number`; `None` if that has no leaves.
    pub(crate) fn leaf(&self, number: usize, other: usize) -> Option<Path> {
        let path = self.directory(number);
        let leaves = &self.directories[&path];
        let name = leaves.keys().nth(other % leaves.len().max(1))?;
        Some(join(&path, name))
    }

    /// Write the layout of a complete listing.
    pub(crate) fn tree(&self, mut writer: &Objects) -> Oid {
        let mut layout = Layout::default();
        for path in self.in_order() {
            let (leaves, digests) = lines(self.directories[&path].iter());
            let listing = ListingText {
                path: &path,
                attributes: &self.attributes(&path),
                leaves: &leaves,
                digests: &digests,
            };
            layout.add(&listing, &mut writer).unwrap();
        }
        layout.finish(&mut writer).unwrap()
    }

    /// Return the attributes of a directory, which depend on its leaves.
    fn attributes(&self, path: &[u8]) -> Vec<u8> {
        self.directories[path].len().to_string().into_bytes()
    }

    fn in_order(&self) -> Vec<Path> {
        let mut paths: Vec<_> = self.directories.keys().cloned().collect();
        paths.sort_by(|one, other| path_order(one, other));
        paths
    }

    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for leaves in self.directories.values() {
            totals.add(Totals::of(&lines(leaves.iter()).0));
        }
        totals
    }

    fn remove_below(&mut self, top: &[u8]) {
        let inside = |path: &Path| *path == top || path.starts_with(&[top, b"/"].concat());
        self.directories.retain(|path, _| !inside(path));
    }

    /// Apply a change; returns the touched paths.
    pub(crate) fn change(&mut self, change: Change) -> Vec<Path> {
        match change {
            Change::Write(number, name, value) => {
                let path = join(&self.directory(number), &word(name));
                if self.directories.contains_key(&path) {
                    return vec![path];
                }
                let leaves = self.directories.get_mut(parent(&path)).unwrap();
                leaves.insert(basename(&path).to_vec(), value);
                vec![path]
            }
            Change::Remove(number, name) => self
                .leaf(number, name)
                .into_iter()
                .inspect(|path| {
                    self.directories
                        .get_mut(parent(path))
                        .unwrap()
                        .remove(basename(path));
                })
                .collect(),
            Change::Make(number, name, leaves) => self.make(number, name, leaves),
            Change::RemoveDirectory(number) => {
                let path = self.directory(number);
                if path.is_empty() {
                    return vec![];
                }
                self.remove_below(&path);
                vec![path]
            }
            Change::Swap(number, name) => {
                let path = self.directory(number);
                if path.is_empty() {
                    return vec![];
                }
                self.remove_below(&path);
                let value = u32::try_from(name).unwrap();
                let leaves = self.directories.get_mut(parent(&path)).unwrap();
                leaves.insert(basename(&path).to_vec(), value);
                vec![path]
            }
            Change::Thin(number, step) => self.thin(number, step),
            Change::Nothing(number, name) => {
                let path = join(&self.directory(number), &word(name));
                vec![path]
            }
        }
    }

    /// Make a directory with so many `leaves`, replacing a leaf if there is one; returns the
    /// touched paths.
    fn make(&mut self, number: usize, name: usize, leaves: usize) -> Vec<Path> {
        let path = join(&self.directory(number), &word(name));
        if self.directories.contains_key(&path) {
            return vec![path];
        }
        let above = self.directories.get_mut(parent(&path)).unwrap();
        above.remove(basename(&path));
        let leaves: BTreeMap<_, _> = (0..leaves).map(|each| (word(each * 7), 3)).collect();
        let names = leaves.keys().map(|name| join(&path, name));
        let touched = names.chain([path.clone()]).collect();
        self.directories.insert(path, leaves);
        touched
    }

    /// Remove half of the leaves of a directory or more; returns their paths.
    fn thin(&mut self, number: usize, step: usize) -> Vec<Path> {
        let path = self.directory(number);
        let mut touched = vec![];
        let leaves = self.directories.get_mut(&path).unwrap();
        for (place, name) in leaves.keys().cloned().enumerate().collect::<Vec<_>>() {
            if place % (2 + step % 3) != 0 {
                leaves.remove(&name);
                touched.push(join(&path, &name));
            }
        }
        touched
    }

    /// Return the amendments for touched paths, in tree order; there is always one of the root.
    pub(crate) fn amendments(&self, touched: &BTreeSet<Path>) -> Vec<Amendment> {
        let mut names_by_directory: BTreeMap<Path, BTreeSet<Path>> =
            BTreeMap::from([(vec![], BTreeSet::new())]);
        for path in touched {
            let mut path = &path[..];
            if self.directories.contains_key(path) {
                names_by_directory.entry(path.to_vec()).or_default();
            }
            while !path.is_empty() {
                let above = parent(path);
                if self.directories.contains_key(above) {
                    let names = names_by_directory.entry(above.to_vec()).or_default();
                    names.insert(basename(path).to_vec());
                }
                path = above;
            }
        }
        let mut amendments: Vec<_> = names_by_directory
            .into_iter()
            .map(|(path, names)| {
                let present = &self.directories[&path];
                let (directories, others): (BTreeSet<_>, BTreeSet<_>) = names
                    .into_iter()
                    .partition(|name| self.directories.contains_key(&join(&path, name)));
                let (found, gone): (BTreeSet<_>, BTreeSet<_>) = others
                    .into_iter()
                    .partition(|name| present.contains_key(name));
                let (leaves, digests) = lines(found.iter().map(|name| (name, &present[name])));
                Amendment {
                    attributes: self.attributes(&path),
                    path,
                    leaves,
                    digests,
                    directories,
                    gone,
                    ..Amendment::default()
                }
            })
            .collect();
        amendments.sort_by(|one, other| path_order(&one.path, &other.path));
        amendments
    }
}

/// Format lines and digests; some have no digest, and some are symlinks.
fn lines<'a>(leaves: impl Iterator<Item = (&'a Path, &'a u32)>) -> (Vec<u8>, Vec<u8>) {
    let (mut text, mut digests) = (Vec::new(), Vec::new());
    for (name, value) in leaves {
        text.extend_from_slice(name);
        if value % 5 == 0 {
            text.extend_from_slice(b"\t>there\t1\n");
            continue;
        }
        text.extend_from_slice(format!("\t{value}\t1\n").as_bytes());
        let digest = if value % 3 == 0 {
            0
        } else {
            value.to_le_bytes()[0]
        };
        digests.extend([digest; 32]);
    }
    (text, digests)
}

pub(crate) fn join(path: &[u8], name: &[u8]) -> Path {
    if path.is_empty() {
        name.to_vec()
    } else {
        [path, b"/", name].concat()
    }
}

/// Return the name for a number; names do not sort as their numbers do.
pub(crate) fn word(number: usize) -> Path {
    format!("{:05x}", number.wrapping_mul(2_654_435_761) % 0xf_ffff).into_bytes()
}

/// Return true if a name does not begin a piece by itself.
fn is_dull(name: &[u8]) -> bool {
    let begins = |start: &[u8]| usize::try_from(crc32(start)).unwrap() % PIECE_LINES < 8;
    !begins(name) && !begins(&[name, b"/"].concat())
}

/// Make a tree with large directories of several kinds.
pub(crate) fn planted(kind: u8) -> Model {
    let mut model = Model::default();
    let is_used = |number: &usize| kind != 3 || is_dull(&word(*number));
    let numbers: Vec<_> = (0..6000).filter(is_used).collect();
    let leaves = |count: usize| -> BTreeMap<Path, u32> {
        let some = numbers.iter().take(count);
        some.map(|number| (word(*number), u32::try_from(*number).unwrap()))
            .collect()
    };
    let (top, subdirectories) = match kind {
        0 => (1500, 0),
        1 => (3, 700),
        2 => (700, 300),
        4 => (6000, 0),
        5 => (40, 12),
        _ => (4500, 600),
    };
    model.directories.insert(vec![], leaves(3));
    model.directories.insert(b"big".to_vec(), leaves(top));
    for number in 0..subdirectories {
        let name = word(*numbers.get(top + number).unwrap_or(&(number + 9000)));
        let path = join(b"big", &name);
        let inside = match number % 50 {
            0 => 150, // a tree of its own
            1 => 60,
            _ => number % 4,
        };
        model.directories.insert(path.clone(), leaves(inside));
        if number % 10 == 2 {
            model.directories.insert(join(&path, b"below"), leaves(2));
        }
    }
    model
}
