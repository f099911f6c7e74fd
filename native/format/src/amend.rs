//! The tree of a snapshot with some of its directories amended (FORMAT.md, "Layout").
//!
//! Goes through the own directories in which something changes, one beside the other with what is
//! to be changed; whatever own directory lies beside is taken over by its id, and not read, and so
//! is each piece of a long manifest in which nothing changes (`sparse`).  The layout makes the new
//! trees as from a whole listing, so equal trees get equal ids, whatever way led to them.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};

use crate::cut::is_file;
use crate::digests::is_zero;
use crate::entry_limit::EntryLimit;
use crate::error::{Error, Result};
use crate::escape::unescape;
use crate::find::split_before;
use crate::git::oid::Oid;
use crate::layout::{Layout, Listing};
use crate::level::{Level, Walk};
use crate::limits::DIGEST_BYTES;
use crate::manifest;
use crate::objects::{ObjectReader, ObjectWriter};
use crate::path::{RelPath, basename, parent, path_order};
use crate::snapshot::{Located, Snapshot};
use crate::sparse::{Reading, Sparse, Step};
use crate::totals::Totals;

/// What is said of a directory that is there.
#[derive(Debug, Clone, Default)]
pub struct Amendment {
    /// From the root.
    pub path: Vec<u8>,
    /// Its own attributes, as in a listing.
    pub attributes: Vec<u8>,
    /// The lines of leaves that are there, sorted by raw name.
    pub leaves: Vec<u8>,
    /// 32 bytes for each file of these, zeros where absent, or none at all.
    pub digests: Vec<u8>,
    /// Names of directories.
    pub directories: BTreeSet<Vec<u8>>,
    /// Names at which nothing is.
    pub gone: BTreeSet<Vec<u8>>,
    /// Names of which nothing is known: what the snapshot has there stays.
    pub unsure: BTreeSet<Vec<u8>>,
    /// Nothing else is there.
    pub is_whole: bool,
}

impl Amendment {
    /// Everything in the directory of which something is said.
    pub(crate) fn names(&self) -> Result<BTreeSet<Vec<u8>>> {
        let mut names = names(&self.leaves)?;
        for more in [&self.directories, &self.gone, &self.unsure] {
            names.extend(more.iter().cloned());
        }
        Ok(names)
    }

    /// Whether a directory of the snapshot is none any more.
    fn ends(&self, name: &[u8], leaves: &BTreeSet<Vec<u8>>) -> bool {
        if self.directories.contains(name) || self.unsure.contains(name) {
            return false;
        }
        self.is_whole || self.gone.contains(name) || leaves.contains(name)
    }
}

/// What came out of it.
#[derive(Debug)]
pub struct Amended {
    /// The id of the root's tree.
    pub tree: Oid,
    /// What is there now and was not counted, or was counted otherwise.
    pub added: Totals,
    /// Directories of these.
    pub added_directories: u64,
    /// What is not there any more, or was counted otherwise.
    pub removed: Totals,
    /// Directories of these.
    pub removed_directories: u64,
    /// Paths at which nothing is, and nothing was.
    pub unknown: BTreeSet<Vec<u8>>,
    /// The directories that are none any more; what was below them is not named.
    pub ended: BTreeSet<Vec<u8>>,
}

/// The tree of `snapshot` with `amendments`, which are in tree order, each directory's after that
/// of the one above it; `limit`: how many entries the snapshot may have.
pub fn amend<R: ObjectReader>(
    snapshot: &Snapshot<R>,
    limit: u64,
    amendments: &[Amendment],
    writer: &mut impl ObjectWriter,
) -> Result<Amended> {
    // Names made for it can keep pieces from being told apart: then all of them are read.
    let sparse = amend_by(snapshot, limit, amendments, true, writer);
    sparse.or_else(|_| amend_by(snapshot, limit, amendments, false, writer))
}

/// The same; `is_sparse`: without reading pieces in which nothing changes.
fn amend_by<R: ObjectReader>(
    snapshot: &Snapshot<R>,
    limit: u64,
    amendments: &[Amendment],
    is_sparse: bool,
    writer: &mut impl ObjectWriter,
) -> Result<Amended> {
    let mut amending = Amending::new(snapshot.tree, amendments);
    if amendments.is_empty() {
        return Ok(amending.result);
    }
    let mut past = Past::new(snapshot, limit, is_sparse);
    loop {
        let next = amendments.get(amending.next);
        match (past.peek()?, next) {
            (None, None) => break,
            (None, Some(amendment)) => amending.make(amendment, writer)?,
            (Some(path), Some(amendment)) => match path_order(path.as_bytes(), &amendment.path) {
                Ordering::Less => amending.pass(&mut past, writer)?,
                Ordering::Equal => amending.change(&mut past, amendment, writer)?,
                Ordering::Greater => amending.make(amendment, writer)?,
            },
            (Some(_), None) => amending.pass(&mut past, writer)?,
        }
    }
    amending.finish(writer)
}

/// The snapshot, from the front to the end; own directories are opened when it is asked for.
struct Past<'a, R> {
    snapshot: &'a Snapshot<R>,
    limit: EntryLimit,
    entries: u64,
    is_sparse: bool,
    levels: Vec<Reading>,
    next: Option<Step>,
}

impl<'a, R: ObjectReader> Past<'a, R> {
    fn new(snapshot: &'a Snapshot<R>, entries: u64, is_sparse: bool) -> Self {
        Self {
            snapshot,
            limit: EntryLimit::new(entries),
            entries,
            is_sparse,
            levels: Vec::new(),
            next: Some(Step::Own(RelPath::root(), snapshot.tree)),
        }
    }

    /// Where the next directory is.
    fn peek(&mut self) -> Result<Option<&RelPath>> {
        while self.next.is_none() {
            let Some(level) = self.levels.last_mut() else {
                return Ok(None);
            };
            self.next = level.next(self.snapshot, &mut self.limit)?;
            if self.next.is_none() {
                self.levels.pop();
            }
        }
        Ok(self.next.as_ref().map(|step| match step {
            Step::Listing(listing) | Step::Leaves(listing) => &listing.path,
            Step::Own(path, _) | Step::Piece(path, _) => path,
        }))
    }

    /// The listing of the next directory, which is opened if it has a tree of its own; all of it,
    /// or with an amendment, which is to be carried out there, the begin of it.
    fn listing(&mut self, amendment: Option<&Amendment>) -> Result<Option<manifest::Listing>> {
        if let Some(Step::Own(path, tree)) = &self.next {
            let limit = &mut self.limit;
            let sparse = match amendment.filter(|_| self.is_sparse) {
                Some(amendment) => Sparse::open(self.snapshot, path, *tree, amendment, limit)?,
                None => None,
            };
            self.levels.push(match sparse {
                Some(sparse) => Reading::Sparse(sparse),
                None => Reading::Whole(Level::open(self.snapshot, path.clone(), *tree, limit)?),
            });
            self.next = None;
            self.peek()?;
        }
        match self.next.take() {
            Some(Step::Listing(listing)) => Ok(Some(listing)),
            other => {
                self.next = other;
                Ok(None)
            }
        }
    }

    /// The directory that is being read, if not all of it is.
    fn sparse(&self) -> Option<&Sparse> {
        match self.levels.last() {
            Some(Reading::Sparse(sparse)) => Some(sparse),
            _ => None,
        }
    }
}

struct Amending<'a> {
    amendments: &'a [Amendment],
    /// The first that has not come yet.
    next: usize,
    by_path: HashMap<&'a [u8], usize>,
    layout: Layout,
    /// The names of leaves that amendments have, of those in which a directory may have ended.
    leaves: HashMap<usize, BTreeSet<Vec<u8>>>,
    /// The directory that ended last.
    ended: Option<RelPath>,
    /// A directory of which more leaves may come, and those that it has now.
    open: Option<(&'a Amendment, Reader<'a>)>,
    result: Amended,
}

impl<'a> Amending<'a> {
    fn new(past: Oid, amendments: &'a [Amendment]) -> Self {
        let numbered = amendments.iter().enumerate();
        Self {
            amendments,
            next: 0,
            by_path: numbered
                .map(|(number, each)| (&*each.path, number))
                .collect(),
            layout: Layout::default(),
            leaves: HashMap::new(),
            ended: None,
            open: None,
            result: Amended {
                tree: past,
                added: Totals::default(),
                added_directories: 0,
                removed: Totals::default(),
                removed_directories: 0,
                unknown: BTreeSet::new(),
                ended: BTreeSet::new(),
            },
        }
    }

    /// The next directory of the snapshot is not amended itself.
    fn pass<R: ObjectReader>(
        &mut self,
        past: &mut Past<'_, R>,
        writer: &mut impl ObjectWriter,
    ) -> Result<()> {
        match past.next.take() {
            Some(Step::Piece(_, located)) => return self.keep(past, &located, writer),
            Some(Step::Leaves(listing)) => return self.go_on(past, &listing, writer),
            other => past.next = other,
        }
        let Some(path) = past.peek()?.cloned() else {
            return Ok(());
        };
        if self.has_ended(&path) {
            return self.remove(past);
        }
        let below = self.amendments.get(self.next);
        let inside = below.is_some_and(|each| is_below(&each.path, path.as_bytes()));
        if let (Some(Step::Own(_, tree)), false) = (&past.next, inside) {
            self.layout.graft(path.as_bytes(), *tree, writer)?;
            past.next = None;
            return Ok(());
        }
        if let Some(listing) = past.listing(None)? {
            self.layout.add(&borrowed(&listing), writer)?;
        }
        Ok(())
    }

    /// Nothing changes in this piece of the directory that was amended last and is read.
    fn keep<R: ObjectReader>(
        &mut self,
        past: &Past<'_, R>,
        located: &Located,
        writer: &mut impl ObjectWriter,
    ) -> Result<()> {
        let (Some(sparse), Some(key)) = (past.sparse(), located.name) else {
            return Err(Error::new("a piece without a directory"));
        };
        let path = sparse.path().as_bytes();
        self.layout.keep(path, key, located.piece, writer)
    }

    /// More leaves of the directory that was amended last.
    fn go_on<R: ObjectReader>(
        &mut self,
        past: &Past<'_, R>,
        listing: &manifest::Listing,
        writer: &mut impl ObjectWriter,
    ) -> Result<()> {
        let Some((amendment, leaves)) = &mut self.open else {
            return Err(Error::new("leaves without a directory"));
        };
        let until = past.sparse().and_then(Sparse::until);
        let merged = Merged::of(listing, leaves, until, amendment)?;
        for name in &merged.found {
            self.result
                .unknown
                .remove(listing.path.join(name).as_bytes());
        }
        self.count_out(&listing.leaves, 0);
        self.result.added.add(Totals::of(&merged.lines));
        if merged.lines.is_empty() {
            return Ok(());
        }
        let more = Listing {
            path: listing.path.as_bytes(),
            attributes: b"",
            leaves: &merged.lines,
            digests: &merged.digests,
        };
        self.layout.add(&more, writer)
    }

    /// The next directory of the snapshot is no directory any more.
    fn remove<R: ObjectReader>(&mut self, past: &mut Past<'_, R>) -> Result<()> {
        match past.next.take() {
            Some(Step::Own(path, tree)) => {
                let limit = EntryLimit::new(past.entries);
                let mut walk = Walk::below(path, tree, limit);
                while let Some(listing) = walk.next(past.snapshot)? {
                    self.count_out(&listing.leaves, 1);
                }
            }
            Some(Step::Listing(listing)) => self.count_out(&listing.leaves, 1),
            _ => {}
        }
        Ok(())
    }

    /// The next directory of the snapshot is the one that is amended next.
    fn change<R: ObjectReader>(
        &mut self,
        past: &mut Past<'_, R>,
        amendment: &'a Amendment,
        writer: &mut impl ObjectWriter,
    ) -> Result<()> {
        let Some(listing) = past.listing(Some(amendment))? else {
            return Ok(());
        };
        let mut leaves = Reader::new(&amendment.leaves, &amendment.digests)?;
        let sparse = past
            .sparse()
            .filter(|sparse| *sparse.path() == listing.path);
        let until = sparse.and_then(Sparse::until);
        let merged = Merged::of(&listing, &mut leaves, until, amendment)?;
        for name in &amendment.gone {
            if !merged.found.contains(name) {
                let path = RelPath::trusted(amendment.path.clone()).join(name);
                self.result.unknown.insert(path.as_bytes().to_vec());
            }
        }
        self.count_out(&listing.leaves, 0);
        self.put(amendment, &merged, writer)?;
        if sparse.is_some() {
            self.open = Some((amendment, leaves));
            self.layout.cut(writer)?;
        }
        Ok(())
    }

    /// A directory that the snapshot does not have.
    fn make(&mut self, amendment: &'a Amendment, writer: &mut impl ObjectWriter) -> Result<()> {
        let nothing = manifest::Listing {
            path: RelPath::trusted(amendment.path.clone()),
            attributes: Vec::new().into(),
            leaves: Vec::new().into(),
            digests: Vec::new().into(),
        };
        let mut leaves = Reader::new(&amendment.leaves, &amendment.digests)?;
        let merged = Merged::of(&nothing, &mut leaves, None, amendment)?;
        for name in &amendment.gone {
            let path = nothing.path.join(name);
            self.result.unknown.insert(path.as_bytes().to_vec());
        }
        self.result.added_directories = self.result.added_directories.saturating_add(1);
        self.put(amendment, &merged, writer)
    }

    fn put(
        &mut self,
        amendment: &'a Amendment,
        merged: &Merged,
        writer: &mut impl ObjectWriter,
    ) -> Result<()> {
        let listing = Listing {
            path: &amendment.path,
            attributes: &amendment.attributes,
            leaves: &merged.lines,
            digests: &merged.digests,
        };
        self.result.added.add(Totals::of(&merged.lines));
        self.leaves.insert(self.next, names(&amendment.leaves)?);
        self.next = self.next.saturating_add(1);
        self.layout.add(&listing, writer)
    }

    /// Whether the directory at `path` of the snapshot is none any more.
    fn has_ended(&mut self, path: &RelPath) -> bool {
        if let Some(top) = &self.ended {
            if is_below(path.as_bytes(), top.as_bytes()) {
                return true;
            }
        }
        let above = self.by_path.get(parent(path.as_bytes())).copied();
        let Some((number, amendment)) =
            above.and_then(|number| Some((number, self.amendments.get(number)?)))
        else {
            return false;
        };
        let leaves = self.leaves.get(&number);
        let ended = !path.is_root()
            && leaves.is_some_and(|leaves| amendment.ends(basename(path.as_bytes()), leaves));
        if ended {
            self.result.unknown.remove(path.as_bytes());
            self.result.ended.insert(path.as_bytes().to_vec());
            self.ended = Some(path.clone());
        }
        ended
    }

    fn count_out(&mut self, leaves: &[u8], directories: u64) {
        self.result.removed.add(Totals::of(leaves));
        self.result.removed_directories =
            self.result.removed_directories.saturating_add(directories);
    }

    fn finish(self, writer: &mut impl ObjectWriter) -> Result<Amended> {
        let tree = self.layout.finish(writer)?;
        Ok(Amended {
            tree,
            ..self.result
        })
    }
}

/// The leaves of a directory as they are now.
struct Merged {
    lines: Vec<u8>,
    digests: Vec<u8>,
    /// Names that are gone, and that the snapshot has as leaves.
    found: BTreeSet<Vec<u8>>,
}

impl Merged {
    /// Of those that were and those that are `after`, up to the name `until` if there is one.
    fn of(
        past: &manifest::Listing,
        after: &mut Reader<'_>,
        until: Option<&[u8]>,
        amendment: &Amendment,
    ) -> Result<Self> {
        let mut merged = Self {
            lines: Vec::new(),
            digests: Vec::new(),
            found: BTreeSet::new(),
        };
        let mut before = Reader::new(&past.leaves, &past.digests)?;
        loop {
            let due = after.leaf.as_ref();
            let due = due.filter(|leaf| until.is_none_or(|until| *leaf.name < *until));
            let order = match (&before.leaf, due) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(old), Some(new)) => old.name.cmp(&new.name),
            };
            let old = before.take_if(order.is_le())?;
            let new = after.take_if(order.is_ge())?;
            merged.add(old, new, amendment);
        }
        if is_zero(&merged.digests) {
            merged.digests.clear();
        }
        Ok(merged)
    }

    fn add(&mut self, old: Option<Leaf<'_>>, new: Option<Leaf<'_>>, amendment: &Amendment) {
        let name = old.as_ref().or(new.as_ref()).map(|leaf| leaf.name.clone());
        let name = name.unwrap_or_default();
        if amendment.unsure.contains(&name) {
            // What it is linked to may be something else by now.
            if let Some(old) = old {
                self.put(&without_link(old.line), old.digest);
            }
        } else if let Some(new) = new {
            self.put(new.line, new.digest);
        } else if let Some(old) = old {
            if amendment.gone.contains(&name) {
                self.found.insert(name);
            } else if !amendment.is_whole && !amendment.directories.contains(&name) {
                self.put(old.line, old.digest);
            }
        }
    }

    fn put(&mut self, line: &[u8], digest: Option<&[u8]>) {
        self.lines.extend_from_slice(line);
        if is_file(split_before(line, b'\t').1) {
            let digest = digest.unwrap_or(&[0; DIGEST_BYTES]);
            self.digests.extend_from_slice(digest);
        }
    }
}

/// A leaf on its way.
struct Leaf<'a> {
    /// Raw.
    name: Vec<u8>,
    line: &'a [u8],
    digest: Option<&'a [u8]>,
}

/// Leaves one after the other.
struct Reader<'a> {
    text: &'a [u8],
    digests: std::slice::ChunksExact<'a, u8>,
    leaf: Option<Leaf<'a>>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a [u8], digests: &'a [u8]) -> Result<Self> {
        let mut reader = Self {
            text,
            digests: digests.chunks_exact(DIGEST_BYTES),
            leaf: None,
        };
        reader.advance()?;
        Ok(reader)
    }

    fn advance(&mut self) -> Result<()> {
        self.leaf = None;
        if self.text.is_empty() {
            return Ok(());
        }
        let (line, _) = split_before(self.text, b'\n');
        let end = line.len().saturating_add(1).min(self.text.len());
        let (line, rest) = self.text.split_at(end);
        self.text = rest;
        let (name, fields) = split_before(line, b'\t');
        let digest = is_file(fields).then(|| self.digests.next()).flatten();
        let name = unescape(name)?.into_owned();
        self.leaf = Some(Leaf { name, line, digest });
        Ok(())
    }

    fn take_if(&mut self, wanted: bool) -> Result<Option<Leaf<'a>>> {
        if !wanted {
            return Ok(None);
        }
        let leaf = self.leaf.take();
        self.advance()?;
        Ok(leaf)
    }
}

/// The raw names of leaves.
fn names(leaves: &[u8]) -> Result<BTreeSet<Vec<u8>>> {
    let lines = leaves
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty());
    lines
        .map(|line| Ok(unescape(split_before(line, b'\t').0)?.into_owned()))
        .collect()
}

/// A line without its hardlink field.
fn without_link(line: &[u8]) -> Vec<u8> {
    let mut fields = line
        .strip_suffix(b"\n")
        .unwrap_or(line)
        .split(|&byte| byte == b'\t');
    let first: Vec<_> = fields.by_ref().take(3).collect();
    let rest = fields.filter(|field| !field.starts_with(b"h"));
    let kept: Vec<_> = first.into_iter().chain(rest).collect();
    let mut line = kept.join(&b'\t');
    line.push(b'\n');
    line
}

fn borrowed(listing: &manifest::Listing) -> Listing<'_> {
    Listing {
        path: listing.path.as_bytes(),
        attributes: &listing.attributes,
        leaves: &listing.leaves,
        digests: &listing.digests,
    }
}

/// Whether `path` is `top` or lies below it.
fn is_below(path: &[u8], top: &[u8]) -> bool {
    let rest = path.strip_prefix(top);
    top.is_empty() || rest.is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_loses_its_link_and_nothing_else() {
        let line = b"hello\t1\t2\tm600\tuhans\th../hase\n";
        assert_eq!(without_link(line), b"hello\t1\t2\tm600\tuhans\n");
        assert_eq!(without_link(b"h\t>h\t2\n"), b"h\t>h\t2\n");
    }

    #[test]
    fn what_is_below_begins_with_the_name_and_a_slash() {
        assert!(is_below(b"a/b", b"a") && is_below(b"a", b"a") && is_below(b"a", b""));
        assert!(!is_below(b"ab", b"a"));
    }
}
