//! The names in single directories of a snapshot, and the markers that identify repositories.
//!
//! Reads each own directory once, with the directories inlined in it, and keeps the last few: paths
//! come in tree order, so neighbours follow each other.

use std::collections::HashMap;
use std::sync::Arc;

use huai_format::entries::has_leaf;
use huai_format::path::{RelPath, at, basename, join, parent};
use huai_format::shared::Shared;
use huai_format::snapshots;
use huai_format::snapshots::{EntryLimit, Manifest, ObjectReader, OwnDirectory, Snapshot};
use huai_git::error::Result;
use huai_git::find::split_before;
use huai_git::object::Kind;

use crate::wildmatch::Glob;

/// The number of own directories whose names are kept.
const READ: usize = 32;
/// The bytes of manifests whose names are kept, unless the last one alone has more.
const READ_BYTES: usize = 16 << 20;

/// A pattern for an entry that directories of one kind have.
#[derive(Debug, Clone)]
pub struct Marker {
    directories: Vec<Glob>,
    /// The name of a file or symlink; `None` if the last directory is the marker.
    leaf: Option<Glob>,
}

impl Marker {
    /// Parse `a/b` as a leaf or `a/` as a directory; `?` and `*` are special.
    pub fn new(text: &[u8]) -> Self {
        let (above, leaf) = text.split_at(text.len().saturating_sub(basename(text).len()));
        let above = above
            .strip_suffix(b"/")
            .map(|above| above.split(|&byte| is_slash(byte)));
        Self {
            directories: above.into_iter().flatten().map(Glob::of_stars).collect(),
            leaf: (!leaf.is_empty()).then(|| Glob::of_stars(leaf)),
        }
    }
}

/// The names in one directory.
#[derive(Debug, Default)]
struct Inside {
    /// The lines of files and symlinks; several parts if the manifest is cut.
    leaves: Vec<Shared>,
    /// The names of subdirectories; sorted.
    folders: Vec<Vec<u8>>,
}

impl Inside {
    /// Return the names of the subdirectories that match.
    fn folders_like<'a>(&'a self, glob: &'a Glob) -> Box<dyn Iterator<Item = &'a [u8]> + 'a> {
        let folders = self.folders.iter().map(Vec::as_slice);
        match glob.text() {
            None => Box::new(folders.filter(|name| glob.matches(name))),
            Some(name) => Box::new(Some(name).filter(|name| self.has_folder(name)).into_iter()),
        }
    }

    fn has_folder(&self, name: &[u8]) -> bool {
        let place = self.folders.binary_search_by(|each| (**each).cmp(name));
        place.is_ok()
    }

    fn has_leaf(&self, name: &[u8]) -> Result<bool> {
        for leaves in &self.leaves {
            if has_leaf(leaves, name)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn has_leaf_like(&self, glob: &Glob) -> Result<bool> {
        match glob.text() {
            None => Ok(self.leaves.iter().any(|lines| is_among(lines, glob))),
            Some(name) => self.has_leaf(name),
        }
    }
}

/// Return true if one of the lines begins with a name, as escaped, that matches.
fn is_among(lines: &[u8], glob: &Glob) -> bool {
    let mut rest = lines;
    while !rest.is_empty() {
        let (line, after) = split_before(rest, b'\n');
        if glob.matches(split_before(line, b'\t').0) {
            return true;
        }
        rest = after.get(1..).unwrap_or_default();
    }
    false
}

/// The names by directory.
#[derive(Debug, Default)]
struct Names {
    inside: HashMap<Vec<u8>, Inside>,
    /// The bytes of the manifests that the lines refer to.
    bytes: usize,
}

impl Names {
    fn entry(&mut self, path: &[u8]) -> &mut Inside {
        self.inside.entry(path.to_vec()).or_default()
    }
}

/// A lookup of names in one snapshot.
#[derive(Debug)]
pub struct NameLookup<R> {
    own: snapshots::Lookup<R>,
    read: Recent<Names>,
}

impl<R: ObjectReader> NameLookup<R> {
    /// Begin without reading; `limit` is the largest number of entries of the snapshot.
    pub fn new(snapshot: Snapshot<R>, limit: u64) -> Self {
        Self {
            own: snapshots::Lookup::new(snapshot, limit),
            read: Recent::new(READ),
        }
    }

    /// Return true if there is a directory at `path`.
    pub fn is_directory(&mut self, path: &[u8]) -> Result<bool> {
        let has = |inside: &Inside| Ok(inside.has_folder(basename(path)));
        Ok(path.is_empty() || self.inside(parent(path), has)?)
    }

    /// Return true if there is an entry at `path`.
    pub fn has_entry(&mut self, path: &[u8]) -> Result<bool> {
        let has = |inside: &Inside| inside.has_leaf(basename(path));
        Ok(self.is_directory(path)? || self.inside(parent(path), has)?)
    }

    /// Return true if the directory `folder` has an entry that matches `marker`.
    pub(super) fn has_marker(&mut self, folder: &[u8], marker: &Marker) -> Result<bool> {
        let mut folders = vec![folder.to_vec()];
        for glob in &marker.directories {
            let mut below = Vec::new();
            for folder in &folders {
                self.inside(folder, |inside| {
                    below.extend(inside.folders_like(glob).map(|name| join(folder, name)));
                    Ok(true)
                })?;
            }
            folders = below;
        }
        let Some(glob) = &marker.leaf else {
            return Ok(!folders.is_empty());
        };
        for folder in folders {
            if self.inside(&folder, |inside| inside.has_leaf_like(glob))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Return the result of `look` for the names in a directory; false if it does not exist.  Reads and
    /// keeps the names of the whole own directory around it.
    fn inside(
        &mut self,
        folder: &[u8],
        look: impl FnOnce(&Inside) -> Result<bool>,
    ) -> Result<bool> {
        let own = self
            .own
            .directory_around(&RelPath::trusted(folder.to_vec()))?;
        let path = own.path.as_bytes();
        let names = if let Some(names) = self.read.get(path) {
            names
        } else {
            let names = self.read_names(&own)?;
            let left = READ_BYTES.saturating_sub(names.bytes);
            self.read.make_room(|kept| kept.bytes, left);
            self.read.keep(path, names)
        };
        names.inside.get(folder).map_or(Ok(false), look)
    }

    /// Read the names in an own directory, and in those inlined in it.
    fn read_names(&self, own: &OwnDirectory) -> Result<Names> {
        let mut limit = EntryLimit::new(self.own.limit());
        limit.spend_trees(own.children.len(), &own.path)?;
        let mut names = Names::default();
        let names_here = names.entry(own.path.as_bytes());
        names_here
            .folders
            .extend(own.children.iter().map(|(name, _)| name.clone()));
        let snapshot = self.own.snapshot();
        for oid in snapshot.manifests(own)? {
            let text = Shared::from(snapshot.reader.read(&oid, Kind::Blob)?);
            names.bytes = names.bytes.saturating_add(text.len());
            let manifest = Manifest::decode(&text, &Shared::default());
            let manifest = manifest.map_err(|error| at(&own.path, error))?;
            limit.spend(manifest.entries(), &own.path)?;
            limit.spend_bytes(manifest.size(), &own.path)?;
            let names_here = names.entry(own.path.as_bytes());
            names_here.leaves.push(manifest.own.leaves);
            for block in manifest.inline.iter().flat_map(|each| &each.blocks) {
                let listing = block.listing(&own.path)?;
                let path = listing.path.as_bytes();
                let above = names.entry(parent(path));
                above.folders.push(basename(path).to_vec());
                let below = names.entry(path);
                below.leaves.push(listing.leaves);
            }
        }
        for inside in names.inside.values_mut() {
            inside.folders.sort_unstable();
        }
        Ok(names)
    }
}

/// A cache of the last values, by path.
#[derive(Debug)]
struct Recent<T> {
    most: usize,
    entries: Vec<(Vec<u8>, Arc<T>)>,
}

impl<T> Recent<T> {
    fn new(most: usize) -> Self {
        let entries = Vec::new();
        Self { most, entries }
    }

    /// Return the cached value of a path, which becomes the newest; `None` if it is not cached.
    fn get(&mut self, path: &[u8]) -> Option<Arc<T>> {
        let place = self.entries.iter().rposition(|(value, _)| value == path)?;
        let entry = self.entries.remove(place);
        let value = Arc::clone(&entry.1);
        self.entries.push(entry);
        Some(value)
    }

    /// Drop the oldest until the others weigh no more than `most`.
    fn make_room(&mut self, weight: impl Fn(&T) -> usize, most: usize) {
        let mut all: usize = self.entries.iter().map(|(_, kept)| weight(kept)).sum();
        let oldest = self.entries.iter().take_while(|(_, kept)| {
            let goes = all > most;
            all = all.saturating_sub(weight(kept));
            goes
        });
        let count = oldest.count();
        self.entries.drain(..count);
    }

    /// Cache a value, and return it; the oldest is dropped if the cache is full.
    fn keep(&mut self, path: &[u8], shared: T) -> Arc<T> {
        if self.entries.len() >= self.most {
            self.entries.remove(0);
        }
        let shared = Arc::new(shared);
        self.entries.push((path.to_vec(), Arc::clone(&shared)));
        shared
    }
}

fn is_slash(byte: u8) -> bool {
    byte == b'/'
}
