//! All entries of a list, in any order, and the git tree that they make.
//!
//! Entries wait in a store, directory by directory; memory holds the directories, the first names
//! of hardlinks and the entries of one directory.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Read, Seek, SeekFrom, Write};

use huai_format::amend::{Amended, Amendment, amend};
use huai_format::attributes::put_owners;
use huai_format::entry::ROOT_OWNER;
use huai_format::layout::{Layout, ListingText};
use huai_format::leader::put_link;
use huai_format::objects::{ObjectReader, ObjectWriter};
use huai_format::path::{RelPath, basename, parent, path_order, show};
use huai_format::snapshot::Snapshot;
use huai_format::totals::Totals;
use huai_git::error::{Error, Result};
use huai_git::oid::Oid;

use crate::entry::{EntryType, ListEntry};
use crate::line::Record;

/// A file or a buffer in which entries wait.
pub trait EntryStore: Read + Write + Seek {}

impl<S: Read + Write + Seek> EntryStore for S {}

/// The entries of one list.
#[derive(Debug)]
pub struct EntryList<S> {
    store: S,
    /// Bytes in the store.
    stored: u64,
    /// The directories, and what is stored of each.
    directories: HashMap<Vec<u8>, Directory>,
    /// The directory of the last entry, and its entries.
    current: Vec<u8>,
    entries: Vec<ListEntry>,
    /// The names of users and of groups.
    users: HashMap<u32, Vec<u8>>,
    groups: HashMap<u32, Vec<u8>>,
    limit: u64,
    count: u64,
    /// The number of entries that no commit can hold, and the path of the first.
    skipped: u64,
}

#[derive(Debug, Default)]
struct Directory {
    /// Its own entry, if it is listed.
    own: Option<ListEntry>,
    /// Offset and length of each group of its entries.
    stored: Vec<(u64, usize)>,
}

/// Path, type, size in bytes, and nanoseconds since the epoch.
pub type EntrySummary = (Vec<u8>, EntryType, u64, i64);

/// The git tree of a list.
#[derive(Debug)]
pub struct ListTree {
    /// The id of the root directory's tree.
    pub tree: Oid,
    /// The totals of the leaves.
    pub totals: Totals,
    /// The number of directories, including the root.
    pub directories: u64,
}

/// The entries of a directory.
struct Listing {
    attributes: Vec<u8>,
    leaves: Vec<u8>,
    /// The names of its subdirectories.
    directories: BTreeSet<Vec<u8>>,
}

/// The first name of a file, and the fields that its names share.
type Leaders = HashMap<u32, (Vec<u8>, Vec<u8>)>;

impl<S: EntryStore> EntryList<S> {
    /// Let entries wait in `store`, which is empty.  More than `limit` entries are refused.
    pub fn new(store: S, limit: u64) -> Self {
        Self {
            store,
            stored: 0,
            directories: HashMap::new(),
            current: Vec::new(),
            entries: Vec::new(),
            users: HashMap::new(),
            groups: HashMap::new(),
            limit,
            count: 0,
            skipped: 0,
        }
    }

    /// Return the number of entries, without those that were skipped.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Return the number of entries that no commit can hold.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Set the name of an owner; entries have its number.
    pub fn name_owner(&mut self, is_user: bool, id: u32, name: &[u8]) {
        let is_valid = !name.is_empty() && !name.contains(&0) && name.first() != Some(&b'#');
        if id != 0 && is_valid {
            let names = if is_user {
                &mut self.users
            } else {
                &mut self.groups
            };
            names.insert(id, name.to_vec());
        }
    }

    /// Add an entry; one that no commit can hold is counted.
    pub fn add(&mut self, mut entry: ListEntry) -> Result<()> {
        if entry.path == b"." {
            entry.path.clear();
        }
        if RelPath::parse(&entry.path).is_err() {
            let mut parts = entry.path.split(|&byte| byte == b'/');
            if parts.any(|part| matches!(part, b"" | b"." | b"..")) {
                return Err(Error::new("an unsafe path").within(show(&entry.path)));
            }
            self.skipped = self.skipped.saturating_add(1);
            return Ok(());
        }
        if !entry.fits() {
            self.skipped = self.skipped.saturating_add(1);
            return Ok(());
        }
        self.count = self.count.saturating_add(1);
        if self.count > self.limit {
            let rule = format!("the list has more than {} entries", self.limit);
            return Err(Error::new(rule));
        }
        let is_directory = entry.kind == EntryType::Directory;
        if is_directory {
            let directory = self.directories.entry(entry.path.clone()).or_default();
            // Rsync lists a directory for itself, and for each name in it that was asked for.
            if directory.own.replace(entry.clone()).is_some() {
                return Ok(());
            }
        }
        if entry.path.is_empty() {
            return if is_directory {
                Ok(())
            } else {
                Err(Error::new("the root is not a directory"))
            };
        }
        if parent(&entry.path) != self.current || self.entries.is_empty() {
            self.store_entries()?;
            self.current = parent(&entry.path).to_vec();
        }
        self.entries.push(entry);
        Ok(())
    }

    /// Return type, size and time of all entries but the root, by path: of a small list.
    pub fn all(&mut self) -> Result<Vec<EntrySummary>> {
        self.store_entries()?;
        let mut all = Vec::new();
        for path in self.paths() {
            let bytes = self.stored_in(&path)?;
            for record in Record::all(&bytes) {
                let path = RelPath::trusted(path.clone()).join(record.name);
                let path = path.as_bytes().to_vec();
                all.push((path, record.kind, record.size, record.mtime));
            }
        }
        Ok(all)
    }

    /// Return the records of a directory's entries.
    fn stored_in(&mut self, path: &[u8]) -> Result<Vec<u8>> {
        let stored = self.directories.get(path).map(|it| it.stored.clone());
        let mut bytes = Vec::new();
        for (offset, length) in stored.unwrap_or_default() {
            self.store.seek(SeekFrom::Start(offset)).map_err(failed)?;
            let begin = bytes.len();
            bytes.resize(begin.saturating_add(length), 0);
            let part = bytes.get_mut(begin..).unwrap_or_default();
            self.store.read_exact(part).map_err(failed)?;
        }
        Ok(bytes)
    }

    /// Move the entries of the current directory to the store.
    fn store_entries(&mut self) -> Result<()> {
        if self.entries.is_empty() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        for entry in self.entries.drain(..) {
            Record::of(&entry).append_to(&mut bytes);
        }
        self.store
            .seek(SeekFrom::Start(self.stored))
            .map_err(failed)?;
        self.store.write_all(&bytes).map_err(failed)?;
        let directory = self.directories.entry(self.current.clone()).or_default();
        directory.stored.push((self.stored, bytes.len()));
        self.stored = self.stored.saturating_add(bytes.len() as u64);
        Ok(())
    }

    /// Write the objects of the tree.
    pub fn write_tree(mut self, writer: &mut impl ObjectWriter) -> Result<ListTree> {
        self.store_entries()?;
        let paths = self.paths();
        let (mut layout, mut leaders) = (Layout::default(), Leaders::new());
        let (mut totals, mut directories) = (Totals::default(), 0_u64);
        for path in paths {
            let Listing {
                attributes, leaves, ..
            } = self.listing(&path, &mut leaders)?;
            totals.add(Totals::of(&leaves));
            directories = directories.saturating_add(1);
            let text = ListingText {
                path: &path,
                attributes: &attributes,
                leaves: &leaves,
                digests: b"",
            };
            layout.add(&text, writer)?;
        }
        let tree = layout.finish(writer)?;
        Ok(ListTree {
            tree,
            totals,
            directories,
        })
    }

    /// Write the objects of `snapshot` with the listed entries in place of its own, and without
    /// those at `removed_paths`, whose directories are listed.
    pub fn amend<R: ObjectReader>(
        mut self,
        snapshot: &Snapshot<R>,
        limit: u64,
        removed_paths: &[Vec<u8>],
        writer: &mut impl ObjectWriter,
    ) -> Result<Amended> {
        self.store_entries()?;
        let paths = self.paths();
        let (mut leaders, mut amendments) = (Leaders::new(), Vec::new());
        for path in paths {
            let Listing {
                attributes,
                leaves,
                directories,
            } = self.listing(&path, &mut leaders)?;
            amendments.push(Amendment {
                path,
                attributes,
                leaves,
                directories,
                ..Amendment::default()
            });
        }
        for path in removed_paths {
            let above = parent(path);
            let place = amendments.binary_search_by(|it| path_order(&it.path, above));
            let amendment = place.ok().and_then(|place| amendments.get_mut(place));
            if let Some(amendment) = amendment {
                amendment.gone.insert(basename(path).to_vec());
            }
        }
        amend(snapshot, limit, &amendments, writer)
    }

    /// Return the paths of all directories, in tree order.
    fn paths(&self) -> Vec<Vec<u8>> {
        let mut paths: Vec<_> = self.directories.keys().cloned().collect();
        paths.sort_unstable_by(|one, other| path_order(one, other));
        paths
    }

    fn listing(&mut self, path: &[u8], leaders: &mut Leaders) -> Result<Listing> {
        let directory = self.directories.get(path);
        let Some(own) = directory.and_then(|it| it.own.as_ref()) else {
            return Err(Error::new("entries of a directory that is not listed").within(show(path)));
        };
        let attributes = self.fields(&Record::of(own)).split_off(1);
        let bytes = self.stored_in(path)?;
        let mut records = Record::all(&bytes);
        records.sort_unstable_by(|one, other| one.name.cmp(other.name));
        let is_same = |pair: &&[Record<'_>]| matches!(pair, [one, other] if one.name == other.name);
        if let Some([record, ..]) = records.windows(2).find(is_same) {
            let path = RelPath::trusted(path.to_vec()).join(record.name);
            return Err(listed_twice(path.as_bytes()));
        }
        let mut leaves = Vec::with_capacity(bytes.len());
        let mut directories = BTreeSet::new();
        for record in &records {
            if record.kind == EntryType::Directory {
                directories.insert(record.name.to_vec());
                continue;
            }
            let fields = self.fields(record);
            record.put_name(&mut leaves);
            leaves.extend_from_slice(&fields);
            if let Some(group) = record.group {
                let leader = leaders.entry(group).or_insert_with(|| {
                    let path = RelPath::trusted(path.to_vec()).join(record.name);
                    (path.as_bytes().to_vec(), fields.clone())
                });
                let is_itself = basename(&leader.0) == record.name && parent(&leader.0) == path;
                // The file may have changed while the list was made.
                if !is_itself && leader.1 == fields {
                    put_link(&mut leaves, path, &leader.0);
                }
            }
            leaves.push(b'\n');
        }
        Ok(Listing {
            attributes,
            leaves,
            directories,
        })
    }

    /// Return the fields of a line, with the tab before the first.
    fn fields(&self, record: &Record<'_>) -> Vec<u8> {
        let mut fields = Vec::new();
        record.put_fields(&mut fields);
        let user = owner(&self.users, record.owner.0);
        let group = owner(&self.groups, record.owner.1);
        put_owners(&mut fields, &user, &group);
        fields
    }
}

/// Return the name of an owner as a line has it.
fn owner(names: &HashMap<u32, Vec<u8>>, id: u32) -> Vec<u8> {
    if id == 0 {
        return ROOT_OWNER.to_vec();
    }
    let name = names.get(&id).cloned();
    name.unwrap_or_else(|| format!("#{id}").into_bytes())
}

fn listed_twice(path: &[u8]) -> Error {
    Error::new("listed twice").within(show(path))
}

/// Return the error of the store itself, if it lent one.
pub(crate) fn failed(error: io::Error) -> Error {
    let kind = error.kind();
    let inner = error.into_inner();
    Error::Lent(inner.unwrap_or_else(|| Box::new(io::Error::from(kind))))
}
