//! All entries of a list, in any order, and the git tree that they make.
//!
//! Entries wait in a store, directory by directory; memory holds the directories, the first names
//! of hardlinks and the entries of one directory.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use huai_format::amend::{Amended, Amendment, amend};
use huai_format::entries::attributes::put_owners;
use huai_format::entries::{ROOT_OWNER, put_link};
use huai_format::path::{RelPath, basename, parent, path_order, show};
use huai_format::snapshots::{ObjectReader, ObjectWriter, Snapshot};
use huai_format::write::{Layout, ListingText, Totals};
use huai_git::error::{Error, Result};
use huai_git::oid::Oid;

use crate::entry::{EntryType, ListEntry, UNSTATED, usual_mode};
use crate::line::{OwnAttributes, Record};
use crate::spool::{EntryStore, Spool};

/// The entries of one list.
#[derive(Debug)]
pub struct EntryList<S> {
    spool: Spool<S>,
    /// The directories, and what is stored of each.
    directories: HashMap<Box<[u8]>, Directory>,
    /// The directory of the last entry, the records of its entries, and their newest time.
    current: Vec<u8>,
    records: Vec<u8>,
    newest: i64,
    /// The names of users and of groups.
    users: HashMap<u32, Vec<u8>>,
    groups: HashMap<u32, Vec<u8>>,
    limit: u64,
    count: u64,
    /// The number of entries that no commit can hold.
    skipped: u64,
    has_links: bool,
}

#[derive(Debug)]
struct Directory {
    /// Its own attributes, if it is listed.
    own: Option<OwnAttributes>,
    /// The newest time of its files and symlinks.
    newest: i64,
    /// Offset and length of each group of its entries.
    stored: Vec<(u64, usize)>,
}

impl Default for Directory {
    fn default() -> Self {
        Self {
            own: None,
            newest: UNSTATED,
            stored: Vec::new(),
        }
    }
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
    /// A digest for each file, or none at all.
    digests: Vec<u8>,
    /// The names of its subdirectories.
    directories: BTreeSet<Vec<u8>>,
}

/// The first name of a file, and the fields that its names share.
type Leaders = HashMap<u32, (Vec<u8>, Vec<u8>)>;

impl<S: EntryStore> EntryList<S> {
    /// Let entries wait in `store`, which is empty.  More than `limit` entries are refused.
    pub fn new(store: S, limit: u64) -> Self {
        Self {
            spool: Spool::new(store),
            directories: HashMap::new(),
            current: Vec::new(),
            records: Vec::new(),
            newest: UNSTATED,
            users: HashMap::new(),
            groups: HashMap::new(),
            limit,
            count: 0,
            skipped: 0,
            has_links: false,
        }
    }

    /// Return the number of entries that no commit can hold.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Return true if a file has several names.
    pub fn has_links(&self) -> bool {
        self.has_links
    }

    /// Count an entry that no commit can hold.
    pub(crate) fn skip(&mut self) {
        self.skipped = self.skipped.saturating_add(1);
    }

    /// Set the name of a user, or else of a group, which entries state by `id`; ignores one for id 0, which is root,
    /// and a malformed one.
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

    /// Add an entry, or count it as skipped if no commit can hold it.  A directory that is listed
    /// again only gets the later attributes.  Fails for an unsafe path, a root that is not a
    /// directory, and above the limit.
    pub fn add(&mut self, mut entry: ListEntry) -> Result<()> {
        if entry.path == b"." {
            entry.path.clear();
        }
        if RelPath::check(&entry.path).is_err() {
            let mut parts = entry.path.split(|&byte| byte == b'/');
            if parts.any(|part| matches!(part, b"" | b"." | b"..")) {
                return Err(Error::new("an unsafe path").within(show(&entry.path)));
            }
            self.skip();
            return Ok(());
        }
        if !entry.fits() {
            self.skip();
            return Ok(());
        }
        self.count = self.count.saturating_add(1);
        if self.count > self.limit {
            let rule = format!("the list has more than {} entries", self.limit);
            return Err(Error::new(rule));
        }
        self.has_links |= entry.group.is_some();
        let is_directory = entry.kind == EntryType::Directory;
        if is_directory {
            let path = entry.path.clone().into_boxed_slice();
            let directory = self.directories.entry(path).or_default();
            // Rsync lists a directory for itself, and for each name in it that was asked for.
            let own = Record::of(&entry).own_attributes();
            if directory.own.replace(own).is_some() {
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
        if parent(&entry.path) != self.current || self.records.is_empty() {
            self.store_records()?;
            self.current.clear();
            self.current.extend_from_slice(parent(&entry.path));
        }
        let record = Record::of(&entry);
        record.append_to(&mut self.records);
        if !is_directory {
            self.newest = self.newest.max(record.mtime);
        }
        Ok(())
    }

    /// Add the root and the directories that the list leaves out, and set unstated times: the
    /// newest one of all files and symlinks below, or the epoch.  Fails if too many are left out.
    pub fn complete(&mut self) -> Result<()> {
        self.store_records()?;
        let most = self.count.saturating_mul(4).saturating_add(1000);
        let listed: Vec<_> = self.directories.keys().cloned().collect();
        let mut missing = BTreeSet::from([Box::default()]);
        for path in &listed {
            let above = RelPath::trusted(path.to_vec());
            for above in above.ancestors() {
                let above: Box<[u8]> = above.into();
                if self.directories.contains_key(&above) || !missing.insert(above) {
                    break; // those above it are there, too
                }
                if missing.len() as u64 > most {
                    return Err(Error::new("the list leaves out too many directories"));
                }
            }
        }
        for path in missing {
            self.directories.entry(path).or_default();
        }
        let mut paths: Vec<_> = self.directories.keys().cloned().collect();
        paths.sort_unstable_by(|one, other| path_order(other, one));
        for path in paths {
            self.complete_one(&path)?;
        }
        Ok(())
    }

    /// Set the time of a directory, which is added if it is not listed, if the list lacks it; those in it come first.
    fn complete_one(&mut self, path: &[u8]) -> Result<()> {
        let Some(directory) = self.directories.get_mut(path) else {
            return Ok(());
        };
        let newest = directory.newest;
        let mtime = if newest == UNSTATED { 0 } else { newest };
        match &mut directory.own {
            Some(own) if own.mtime == UNSTATED => own.mtime = mtime,
            Some(_) => {}
            None => self.add(ListEntry {
                path: path.to_vec(),
                kind: EntryType::Directory,
                size: 0,
                mtime: mtime.into(),
                mode: usual_mode(EntryType::Directory),
                owner: (0, 0),
                target: Vec::new(),
                group: None,
                digest: None,
            })?,
        }
        if let Some(above) = self.directories.get_mut(parent(path)) {
            above.newest = above.newest.max(newest);
        }
        Ok(())
    }

    /// Return path, type, size and mtime of each entry but the root, in tree order of their directories.  Holds all of them in
    /// memory: for small lists.
    pub fn summaries(&mut self) -> Result<Vec<EntrySummary>> {
        self.flush()?;
        let mut all = Vec::new();
        for (path, directory) in in_tree_order(self.directories.iter()) {
            let bytes = stored_in(&mut self.spool, directory)?;
            for record in Record::all(&bytes) {
                let path = RelPath::trusted(path.to_vec()).join(record.name);
                let path = path.as_bytes().to_vec();
                all.push((path, record.kind, record.size, record.mtime));
            }
        }
        Ok(all)
    }

    /// Append the records of the current directory to the spool.
    fn store_records(&mut self) -> Result<()> {
        if self.records.is_empty() {
            return Ok(());
        }
        let stored = (self.spool.append(&self.records)?, self.records.len());
        self.records.clear();
        let directory = match self.directories.get_mut(&*self.current) {
            Some(directory) => directory,
            None => self.directories.entry((&*self.current).into()).or_default(),
        };
        if directory.stored.is_empty() {
            directory.stored.reserve_exact(1); // most directories have no more
        }
        directory.stored.push(stored);
        directory.newest = directory
            .newest
            .max(std::mem::replace(&mut self.newest, UNSTATED));
        Ok(())
    }

    /// Move all records to the store.
    fn flush(&mut self) -> Result<()> {
        self.store_records()?;
        self.records = Vec::new();
        self.spool.flush()
    }

    /// Write the objects of the tree, as the last use of the list.  Fails for entries of a
    /// directory that is not listed, and for a name that is listed twice.
    pub fn write_tree(mut self, writer: &mut impl ObjectWriter) -> Result<ListTree> {
        self.flush()?;
        let listed = in_tree_order(std::mem::take(&mut self.directories));
        let (mut layout, mut leaders) = (Layout::default(), Leaders::new());
        let (mut totals, mut directories) = (Totals::default(), 0_u64);
        for (path, directory) in listed {
            let listing = self.listing(&path, &directory, &mut leaders)?;
            totals.add(Totals::of(&listing.leaves));
            directories = directories.saturating_add(1);
            let text = ListingText {
                path: &path,
                attributes: &listing.attributes,
                leaves: &listing.leaves,
                digests: &listing.digests,
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

    /// Write the objects of `snapshot`, which has at most `limit` entries, with the listed entries
    /// added or replaced, and without those at `removed_paths`, whose directories must be listed.
    /// Fails as `write_tree` does.
    pub fn amend<R: ObjectReader>(
        mut self,
        snapshot: &Snapshot<R>,
        limit: u64,
        removed_paths: &[Vec<u8>],
        writer: &mut impl ObjectWriter,
    ) -> Result<Amended> {
        self.flush()?;
        let listed = in_tree_order(std::mem::take(&mut self.directories));
        let (mut leaders, mut amendments) = (Leaders::new(), Vec::new());
        for (path, directory) in listed {
            let Listing {
                attributes,
                leaves,
                digests,
                directories,
            } = self.listing(&path, &directory, &mut leaders)?;
            amendments.push(Amendment {
                path: path.into_vec(),
                attributes,
                leaves,
                digests,
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

    /// Return the text of a directory, sorted by name, and add new first names of files to
    /// `leaders`; an error if it is not listed, or one of its names twice.
    fn listing(
        &mut self,
        path: &[u8],
        directory: &Directory,
        leaders: &mut Leaders,
    ) -> Result<Listing> {
        let stated = directory.own.filter(|own| own.mtime != UNSTATED);
        let Some(own) = stated else {
            return Err(Error::new("entries of a directory that is not listed").within(show(path)));
        };
        let mut attributes = Vec::new();
        self.put_fields(&own.record(), &mut attributes);
        attributes.remove(0);
        let bytes = stored_in(&mut self.spool, directory)?;
        let mut records = Record::all(&bytes);
        records.sort_unstable_by(|one, other| one.name.cmp(other.name));
        let is_same = |pair: &&[Record<'_>]| matches!(pair, [one, other] if one.name == other.name);
        if let Some([record, ..]) = records.windows(2).find(is_same) {
            let path = RelPath::trusted(path.to_vec()).join(record.name);
            return Err(listed_twice(path.as_bytes()));
        }
        let (mut leaves, mut digests) = (Vec::with_capacity(bytes.len()), Vec::new());
        let has_digests = records.iter().any(|record| record.digest.is_some());
        let mut directories = BTreeSet::new();
        for record in &records {
            if record.kind == EntryType::Directory {
                directories.insert(record.name.to_vec());
                continue;
            }
            record.put_name(&mut leaves);
            let begin = leaves.len();
            self.put_fields(record, &mut leaves);
            if let Some(group) = record.group {
                let fields = leaves.get(begin..).unwrap_or_default();
                let leader = leaders.entry(group).or_insert_with(|| {
                    let path = RelPath::trusted(path.to_vec()).join(record.name);
                    (path.as_bytes().to_vec(), fields.to_vec())
                });
                let is_itself = basename(&leader.0) == record.name && parent(&leader.0) == path;
                // The file may have changed while the list was made.
                if !is_itself && leader.1 == fields {
                    put_link(&mut leaves, path, &leader.0);
                }
            }
            leaves.push(b'\n');
            if has_digests && record.kind == EntryType::File {
                digests.extend_from_slice(&record.digest.unwrap_or_default());
            }
        }
        Ok(Listing {
            attributes,
            leaves,
            digests,
            directories,
        })
    }

    /// Append the fields of a line, with the tab before the first.
    fn put_fields(&self, record: &Record<'_>, line: &mut Vec<u8>) {
        record.put_fields(line);
        let user = owner(&self.users, record.owner.0);
        let group = owner(&self.groups, record.owner.1);
        put_owners(line, &user, &group);
    }
}

/// Sort directories by their paths, each before those in it.
fn in_tree_order<P: AsRef<[u8]>, D>(directories: impl IntoIterator<Item = (P, D)>) -> Vec<(P, D)> {
    let mut listed: Vec<_> = directories.into_iter().collect();
    listed.sort_unstable_by(|(one, _), (other, _)| path_order(one.as_ref(), other.as_ref()));
    listed
}

/// Return the records of a directory's entries.
fn stored_in<S: EntryStore>(spool: &mut Spool<S>, directory: &Directory) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for (offset, length) in &directory.stored {
        spool.read(*offset, *length, &mut bytes)?;
    }
    Ok(bytes)
}

/// Return the name of an owner as a line has it: `#ID` if it is unknown.
fn owner(names: &HashMap<u32, Vec<u8>>, id: u32) -> Cow<'_, [u8]> {
    if id == 0 {
        return ROOT_OWNER.into();
    }
    match names.get(&id) {
        Some(name) => name.into(),
        None => format!("#{id}").into_bytes().into(),
    }
}

fn listed_twice(path: &[u8]) -> Error {
    Error::new("listed twice").within(show(path))
}
