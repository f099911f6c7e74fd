//! A downstream tree against a selection of a snapshot: a merge of two streams in tree order.
//!
//! Looks at attributes only, and says nothing of what is as it should be.  Memory grows with the
//! largest directory, the depth and the number of hardlink groups, not with the tree.
//!
//! Findings come in tree order, but for extraneous leaves, which come after the directories beside
//! them: one of those may be wanted under the leaf's name, and that is one finding.

use std::cmp::Ordering;
use std::collections::{HashSet, VecDeque};

use huai_format::entry::{Body, Entry};
use huai_format::error::{Error as FormatError, Result};
use huai_format::line::{Bookmark, Leaves, decode_directory};
use huai_format::manifest::Listing;
use huai_format::objects::ObjectReader;
use huai_format::path::{RelPath, path_order};
use huai_format::selection::{Modes, Selection};
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::ahead::Ahead;
use crate::attributes::{self, Mode};
use crate::call::{self, Outcome};
use crate::difference::{self, differences};
use crate::error::Error;
use crate::extraneous::Extraneous;
use crate::findings::{Attribute, Attributes, Findings};
use crate::folders::Folders;
use crate::handle::Root;
use crate::local::{Closed, Found, Leaf, Local, LocalReader, Seen, look};
use crate::numbers::{NumberOf, Numbers};
use crate::owners::Kind;
use crate::scope::{Scope, tree_order};
use crate::stop::Stop;

/// How to compare.
#[derive(Debug)]
pub struct Options {
    /// What is compared; all that is selected is in it.
    pub scope: Scope,
    /// Which modes are right.
    pub modes: Modes,
    /// Compare owners and groups.
    pub owners: bool,
    /// Tell of each file whose content is to be read, even if nothing differs.
    pub content: bool,
    /// End a batch at a directory that may not be looked into: the caller opens it up.
    pub opens_up: bool,
    /// Directories looked at at the same time.
    pub threads: usize,
}

/// A comparison and how far it has come.
#[derive(Debug)]
pub struct TreeComparison<R> {
    selection: Selection<R>,
    listing: Option<Listing>,
    has_listings: bool,
    frames: Ahead<Local>,
    batch: VecDeque<Local>,
    has_frames: bool,
    pair: Option<Pair>,
    place: Place,
}

/// A directory of both sides, or of one, and how far its leaves were compared.
#[derive(Debug)]
struct Pair {
    path: RelPath,
    wanted: Option<(Listing, Bookmark)>,
    local: Option<Local>,
    next: usize,
    /// Where in the names of the local subdirectories the next one stands.
    child: usize,
}

/// What is remembered from one directory to the next.
#[derive(Debug)]
struct Place {
    root: Root,
    options: Options,
    numbers: Numbers,
    extraneous: Extraneous,
    /// Directories in the place of a wanted leaf, which were told of already.
    retyped: HashSet<Vec<u8>>,
    /// The directory that could not be read and that the last one is, or is below: its key.
    blind: Option<Vec<u8>>,
    /// Inodes with several names that are leaders of groups.
    inodes: HashSet<(u64, u64)>,
    folders: Folders,
    last: Option<(RelPath, Vec<u8>, bool)>,
}

impl<R: ObjectReader> TreeComparison<R> {
    /// Of the directory that this process has open as `handle`.
    pub fn open(
        handle: u32,
        selection: Selection<R>,
        options: Options,
    ) -> std::result::Result<Self, Error> {
        let open = || {
            let root = Root::try_of(call::reopen(handle)?)?;
            let folders = Folders::new(root.again()?, None)?;
            Ok((root, folders))
        };
        let (root, folders) = open().map_err(|errno| Error::new("open", b"", errno))?;
        Ok(Self {
            selection,
            listing: None,
            has_listings: true,
            frames: Ahead::new(&options.scope.top),
            batch: VecDeque::new(),
            has_frames: true,
            pair: None,
            place: Place {
                root,
                options,
                numbers: Numbers::default(),
                extraneous: Extraneous::default(),
                retyped: HashSet::new(),
                blind: None,
                inodes: HashSet::new(),
                folders,
                last: None,
            },
        })
    }

    /// Compare until the batch is full; whether there is no more to compare.
    pub fn advance(
        &mut self,
        number_of: &NumberOf<'_>,
        stop: &Stop,
        to: &mut Findings,
    ) -> Result<bool> {
        let mut ended = false;
        while !to.is_full() && !ended {
            if stop.is_set() {
                return Err(failed(b"", Errno::CANCELED));
            }
            if let Some(mut pair) = self.pair.take() {
                if !self.compare(&mut pair, number_of, to)? {
                    self.pair = Some(pair);
                }
            } else if let Some(pair) = self.next_pair(stop)? {
                self.place.begin(&pair, number_of, to)?;
                self.pair = Some(pair);
            } else {
                self.place.extraneous.leave(None, to);
                ended = true;
            }
        }
        to.finish();
        Ok(ended)
    }

    /// The place in tree order of the last entry that was found or is missing; empty: none.
    pub fn position(&self) -> Vec<u8> {
        let last = self.place.last.as_ref();
        last.map_or_else(Vec::new, |(directory, name, is_directory)| {
            if *is_directory {
                tree_order(directory.as_bytes(), true)
            } else {
                tree_order(directory.join(name).as_bytes(), false)
            }
        })
    }

    /// Extraneous leaves that were met and are not told of yet.
    pub fn waiting(&self) -> Vec<Vec<u8>> {
        self.place.extraneous.waiting()
    }

    /// These need not be told of any more.
    pub fn forget(&mut self, paths: HashSet<Vec<u8>>) {
        for path in paths {
            self.place.extraneous.take(&path);
        }
    }

    fn next_pair(&mut self, stop: &Stop) -> Result<Option<Pair>> {
        if self.listing.is_none() && self.has_listings {
            self.listing = self.selection.next_directory()?;
            self.has_listings = self.listing.is_some();
        }
        if self.batch.is_empty() && self.has_frames {
            let Place { root, options, .. } = &self.place;
            let reader = || LocalReader::new(root, &options.scope, options.opens_up, stop);
            let batch = self.frames.next(options.threads, reader);
            self.batch = batch
                .map_err(|error| FormatError::Lent(Box::new(error)))?
                .into();
            self.has_frames = !self.batch.is_empty();
        }
        let order = match (&self.listing, self.batch.front()) {
            (None, None) => return Ok(None),
            (Some(listing), Some(local)) => path_order(listing.path.as_bytes(), &local.path),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
        };
        let wanted = if order.is_le() {
            self.listing.take()
        } else {
            None
        };
        let local = if order.is_ge() {
            self.batch.pop_front()
        } else {
            None
        };
        let path = match (&wanted, &local) {
            (Some(listing), _) => listing.path.clone(),
            (None, local) => RelPath::trusted(
                local
                    .as_ref()
                    .map_or_else(Vec::new, |each| each.path.clone()),
            ),
        };
        let wanted = wanted.map(|listing| {
            let start = Bookmark::start(&listing.leaves, &listing.digests);
            (listing, start)
        });
        Ok(Some(Pair {
            path,
            wanted,
            local,
            next: 0,
            child: 0,
        }))
    }

    /// Compare leaves until the batch is full; whether all are done.
    fn compare(
        &mut self,
        pair: &mut Pair,
        number_of: &NumberOf<'_>,
        to: &mut Findings,
    ) -> Result<bool> {
        let Self {
            selection, place, ..
        } = self;
        let mut wanted = pair.wanted.take();
        if let Some((listing, bookmark)) = &mut wanted {
            let (text, digests) = (&listing.leaves, &listing.digests);
            let mut leaves = Leaves::resume(&listing.path, text, digests, bookmark);
            while let Some(entry) = leaves.next() {
                let mut entry = entry?;
                to.step();
                if place.wants(&listing.path, &entry) && selection.admits(&listing.path, &mut entry)
                {
                    place.leaf(pair, &entry, number_of, to)?;
                }
                if to.is_full() {
                    let reached = leaves.bookmark();
                    *bookmark = reached;
                    pair.wanted = wanted;
                    return Ok(false);
                }
            }
        }
        while let Some(leaf) = pair.local.as_ref().and_then(|local| local.leaf(pair.next)) {
            place.only_here(&pair.path, leaf, to);
            pair.next += 1;
        }
        Ok(true)
    }
}

impl Place {
    /// Compare the directory itself.
    fn begin(&mut self, pair: &Pair, number_of: &NumberOf<'_>, to: &mut Findings) -> Result<()> {
        let path = pair.path.as_bytes();
        let key = tree_order(path, true);
        to.step();
        self.extraneous.leave(Some(&key), to);
        self.blind = self.blind.take().filter(|blind| key.starts_with(blind));
        let (own, closed) = pair
            .local
            .as_ref()
            .map_or((None, None), |local| (local.own, local.closed));
        let is_hidden = own.is_none() && closed.is_some();
        let scope = &self.options.scope;
        let wanted = pair.wanted.as_ref().filter(|_| {
            scope.covers(path) && scope.holds(path, true) && !is_hidden && self.blind.is_none()
        });
        if let Some((listing, _)) = wanted {
            let entry = decode_directory(&pair.path, &listing.attributes)?;
            match own {
                Some(seen) => self.found((&pair.path, &entry), &seen, b"", number_of, to)?,
                None => self.directory_alone(&pair.path, &entry, number_of, to)?,
            }
        } else if own.is_some() && !self.retyped.remove(path) {
            to.add_extraneous(path, true);
        }
        if let Some(why) = closed {
            to.add_unreadable(path, why, true);
            self.blind = Some(key);
            if self.options.opens_up {
                to.fill();
            }
        }
        Ok(())
    }

    /// Whether a leaf of the snapshot belongs to the scope, and can be judged.
    fn wants(&self, directory: &RelPath, entry: &Entry<'_>) -> bool {
        let scope = &self.options.scope;
        if self.blind.is_some() || (scope.top.is_empty() && scope.after.is_empty()) {
            return self.blind.is_none();
        }
        let path = directory.join(&entry.name);
        scope.covers(path.as_bytes()) && scope.holds(path.as_bytes(), false)
    }

    /// Compare a leaf of the snapshot with what is there.
    fn leaf(
        &mut self,
        pair: &mut Pair,
        entry: &Entry<'_>,
        number_of: &NumberOf<'_>,
        to: &mut Findings,
    ) -> Result<()> {
        let name = &*entry.name;
        let mut here = None;
        if let Some(local) = &pair.local {
            while let Some(leaf) = local.leaf(pair.next).filter(|leaf| leaf.name <= name) {
                pair.next += 1;
                if leaf.name == name {
                    here = Some(leaf);
                    break;
                }
                self.only_here(&pair.path, leaf, to);
            }
        }
        let wanted = (&pair.path, entry);
        match here {
            Some(Leaf {
                seen: Ok(seen),
                target,
                ..
            }) => self.found(wanted, &seen, target, number_of, to),
            Some(leaf) => {
                self.only_here(&pair.path, leaf, to);
                Ok(())
            }
            None => {
                let is_top = || pair.path.join(name).as_bytes() == self.options.scope.top;
                let may_be_directory = match &pair.local {
                    Some(local) => has_child(&local.children, &mut pair.child, name),
                    None => false,
                };
                if may_be_directory || is_top() {
                    self.leaf_alone(wanted, number_of, to)
                } else {
                    self.missing(wanted, to);
                    Ok(())
                }
            }
        }
    }

    /// A wanted leaf in whose place a directory may be.
    fn leaf_alone(
        &mut self,
        wanted: (&RelPath, &Entry<'_>),
        number_of: &NumberOf<'_>,
        to: &mut Findings,
    ) -> Result<()> {
        let path = wanted.0.join(&wanted.1.name);
        match look(&mut self.folders, path.as_bytes()) {
            Ok(Some(Found { seen, target })) => {
                self.retyped.insert(path.as_bytes().to_vec());
                self.found(wanted, &seen, &target, number_of, to)
            }
            Ok(None) => {
                self.missing(wanted, to);
                Ok(())
            }
            Err(errno) => {
                to.add_unreadable(path.as_bytes(), Closed::Errno(errno), false);
                Ok(())
            }
        }
    }

    /// A wanted directory that was not met; a leaf may be in its place.
    fn directory_alone(
        &mut self,
        path: &RelPath,
        entry: &Entry<'_>,
        number_of: &NumberOf<'_>,
        to: &mut Findings,
    ) -> Result<()> {
        // Nobody remembers the leaves before the place where the scope begins.
        let from_start = self.options.scope.after.is_empty();
        if from_start && !self.extraneous.holds(path.as_bytes()) {
            self.missing((path, entry), to);
            return Ok(());
        }
        match look(&mut self.folders, path.as_bytes()) {
            Ok(Some(Found { seen, target })) => {
                self.extraneous.take(path.as_bytes());
                self.found((path, entry), &seen, &target, number_of, to)
            }
            Ok(None) => {
                self.missing((path, entry), to);
                Ok(())
            }
            Err(errno) => {
                to.add_unreadable(path.as_bytes(), Closed::Errno(errno), true);
                Ok(())
            }
        }
    }

    /// A leaf that is wanted nowhere, as far as is known.
    fn only_here(&mut self, directory: &RelPath, leaf: Leaf<'_>, to: &mut Findings) {
        match leaf.seen {
            Ok(_) => self.extraneous.add(directory.as_bytes(), leaf.name),
            Err(errno) => {
                let path = directory.join(leaf.name);
                to.add_unreadable(path.as_bytes(), Closed::Errno(errno), false);
            }
        }
    }

    fn missing(&mut self, wanted: (&RelPath, &Entry<'_>), to: &mut Findings) {
        self.count(wanted, to);
        to.add_missing(wanted.0, wanted.1);
    }

    fn count(&mut self, (directory, entry): (&RelPath, &Entry<'_>), to: &mut Findings) {
        to.count(entry);
        let is_directory = matches!(entry.body, Body::Directory);
        match &mut self.last {
            Some((above, name, directories)) if *above == *directory => {
                name.clear();
                name.extend_from_slice(&entry.name);
                *directories = is_directory;
            }
            last => *last = Some((directory.clone(), entry.name.to_vec(), is_directory)),
        }
    }

    /// Compare a wanted entry with what is at its path.
    fn found(
        &mut self,
        wanted: (&RelPath, &Entry<'_>),
        seen: &Seen,
        target: &[u8],
        number_of: &NumberOf<'_>,
        to: &mut Findings,
    ) -> Result<()> {
        let entry = wanted.1;
        let differing = self.differences(entry, seen, target, number_of);
        let mut differing = differing.map_err(|errno| failed(wanted.0.as_bytes(), errno))?;
        if let (Body::File { link: None, .. }, 2..) = (&entry.body, seen.links) {
            // One inode here for two groups of the snapshot: a change of one would change both.
            let is_new = self.inodes.insert((seen.device, seen.inode));
            differing.add_if(Attribute::Link, !is_new);
        }
        self.count(wanted, to);
        if !differing.is_empty() || (self.options.content && is_worth_reading(entry, differing)) {
            to.add_match(wanted, differing, seen, target);
        }
        Ok(())
    }

    fn differences(
        &mut self,
        entry: &Entry<'_>,
        seen: &Seen,
        target: &[u8],
        number_of: &NumberOf<'_>,
    ) -> Outcome<Attributes> {
        let wanted = self.wanted(entry, number_of)?;
        let body = match &entry.body {
            Body::File { size, .. } => difference::Body::File(*size),
            Body::Directory => difference::Body::Directory,
            Body::Symlink { target } => difference::Body::Symlink(target),
        };
        let mut found = differences(body, &wanted, seen, target);
        if let (
            Body::File {
                link: Some(link), ..
            },
            FileType::RegularFile,
        ) = (&entry.body, seen.kind)
        {
            let leader = look(&mut self.folders, link.as_bytes()).ok().flatten();
            let is_leader = leader.is_some_and(|it| it.seen.is_inode_of(seen));
            found.add_if(Attribute::Link, !is_leader);
        }
        Ok(found)
    }

    /// The attributes of an entry here.
    fn wanted(
        &mut self,
        entry: &Entry<'_>,
        number_of: &NumberOf<'_>,
    ) -> Outcome<attributes::Attributes> {
        let Self {
            options, numbers, ..
        } = self;
        let mut number = |kind, name| {
            if options.owners {
                numbers.number(kind, name, number_of)
            } else {
                Ok(None)
            }
        };
        let mode = options.modes.of(entry).map(u32::from);
        Ok(attributes::Attributes {
            user: number(Kind::User, &entry.owner)?,
            group: number(Kind::Group, &entry.group)?,
            mode: mode.map_or(Mode::Kept(0), Mode::Exact),
            mtime: entry.mtime,
        })
    }
}

/// A file with a digest and the right size that is no hardlink.
fn is_worth_reading(entry: &Entry<'_>, differing: Attributes) -> bool {
    let Body::File { link, digest, .. } = &entry.body else {
        return false;
    };
    digest.is_some()
        && !differing.has(Attribute::Type)
        && !differing.has(Attribute::Size)
        && (link.is_none() || differing.has(Attribute::Link))
}

/// Whether `name` is among `children`, sorted and each ended by NUL; `from` is where to look on for
/// a name that comes later.
fn has_child(children: &[u8], from: &mut usize, name: &[u8]) -> bool {
    while let Some(rest) = children.get(*from..).filter(|rest| !rest.is_empty()) {
        let child = rest.split(|byte| *byte == 0).next().unwrap_or_default();
        if child >= name {
            return child == name;
        }
        *from += child.len() + 1;
    }
    false
}

fn failed(path: &[u8], errno: Errno) -> FormatError {
    FormatError::Lent(Box::new(Error::new("compare", path, errno)))
}
