//! Merges scanned directories with the entries of the last commit that stay.
//!
//! A path that could not be read keeps its old entry; a new one is left out.  Rule: kept entries
//! have to fit the new ones, so a kept hardlink whose leader is gone becomes a
//! separate file.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use huai_format::entries::{Body, Leaves, RawLeaf, raw_leaves};
use huai_format::escape::unescape;
use huai_format::limits::{DIGEST_BYTES, INLINE_ENTRIES};
use huai_format::path::{RelPath, order_key};
use huai_format::snapshots::{EntryLimit, Lookup, ObjectReader, ObjectWriter, Walk};
use huai_format::write;
use huai_format::write::{Layout, Totals};
use huai_git::error::{Error, Result};
use huai_git::oid::Oid;

use super::failure::{CommitProblem, Substitute};
use super::shards::Part;
use crate::scan::directory::{Directory, Frame};
use crate::scan::hardlinks::{HardlinkGroups, Inode, LINK, State, split_link};
use crate::scan::linked::put_pair;

/// A layout of scanned and kept entries.
pub(super) struct Builder<'a, R, W> {
    pub(super) past: Option<Lookup<R>>,
    writer: &'a mut W,
    layout: Layout,
    groups: HardlinkGroups,
    /// The paths whose old entries stay.
    kept: HashSet<Vec<u8>>,
    /// The kept directories that are still to come, by their place in tree order.
    waiting: BTreeMap<Vec<u8>, RelPath>,
    /// The lines for the record of hardlink groups.
    pub(super) pairs: Vec<u8>,
    pub(super) problems: Vec<CommitProblem>,
    pub(super) totals: Totals,
    pub(super) directories: u64,
    /// The number of entries that no snapshot can hold.
    pub(super) skipped: u64,
}

impl<'a, R: ObjectReader, W: ObjectWriter> Builder<'a, R, W> {
    /// Begin at the directory `top`, empty for the root; `past` is the last commit, if there is
    /// one.
    pub(super) fn new(top: &[u8], past: Option<Lookup<R>>, writer: &'a mut W) -> Self {
        Self {
            past,
            writer,
            layout: Layout::below(top),
            groups: HardlinkGroups::default(),
            kept: HashSet::new(),
            waiting: BTreeMap::new(),
            pairs: Vec::new(),
            problems: Vec::new(),
            totals: Totals::default(),
            directories: 0,
            skipped: 0,
        }
    }

    /// Add the next frame, in tree order, after the kept directories that come before it.
    pub(super) fn add_frame(&mut self, frame: Frame, part: &Part<R>) -> Result<()> {
        while let Some(first) = self.waiting.first_entry() {
            if *first.key() >= order_key(frame.path()) {
                break;
            }
            let path = first.remove();
            self.keep_below(&path)?;
        }
        match frame {
            Frame::Read(directory) => self.put_directory(directory)?,
            Frame::Shard { path, .. } => self.graft(&path, part)?,
            Frame::Unreadable { path, reason } => {
                let is_kept = self.keep_below(&RelPath::trusted(path.clone()))?;
                let outcome = if is_kept {
                    Substitute::Kept
                } else {
                    Substitute::LeftOut
                };
                self.problems.push(CommitProblem {
                    path,
                    reason,
                    outcome,
                });
            }
        }
        self.pairs.append(&mut self.groups.take_pairs());
        Ok(())
    }

    /// Add a shard, whose tree is written already; the entries of a small one are added to the trees here.  Fails if
    /// it has no result.
    fn graft(&mut self, path: &[u8], part: &Part<R>) -> Result<()> {
        let tree = part.shards.get(path).and_then(|shard| shard.tree);
        let (Some((tree, entries)), Some(objects)) = (tree, &part.objects) else {
            return Err(Error::bug("a shard without a result"));
        };
        if entries > INLINE_ENTRIES as u64 {
            return self.layout.graft(path, tree, self.writer);
        }
        let limit = EntryLimit::new(entries);
        let mut walk = Walk::below(RelPath::trusted(path.to_vec()), tree, limit);
        while let Some(listing) = walk.next(objects)? {
            let listing = write::ListingText {
                path: listing.path.as_bytes(),
                attributes: &listing.attributes,
                leaves: &listing.leaves,
                digests: &listing.digests,
            };
            self.layout.add(&listing, self.writer)?;
        }
        Ok(())
    }

    /// Return the inode and the leader of each file that may have names in another part, and forget
    /// the groups.
    pub(super) fn open_groups(&mut self) -> Vec<(Inode, Vec<u8>)> {
        std::mem::take(&mut self.groups).open().collect()
    }

    /// Add the last kept directories, and write the tree; returns the id of the top directory's
    /// tree.
    pub(super) fn finish(&mut self) -> Result<Oid> {
        while let Some((_, path)) = self.waiting.pop_first() {
            self.keep_below(&path)?;
        }
        std::mem::take(&mut self.layout).finish(self.writer)
    }

    /// Add a scanned directory, with the old entries of names that could not be read; records its hardlinks and
    /// problems.
    fn put_directory(&mut self, mut directory: Directory) -> Result<()> {
        self.skipped += directory.skipped;
        let mut unsure = BTreeSet::new();
        for problem in &directory.problems {
            self.skipped += u64::from(problem.reason.leaves_out());
            if problem.is_of_entry() {
                unsure.insert(problem.name.clone());
            }
        }
        self.groups.resolve(&mut directory, &unsure);
        if !unsure.is_empty() {
            self.put_past_leaves(&mut directory, &unsure)?;
        }
        for problem in std::mem::take(&mut directory.problems) {
            if problem.reason.leaves_out() {
                continue;
            }
            let path = RelPath::trusted(directory.path.clone());
            let path = if problem.name.is_empty() {
                path
            } else {
                path.join(&problem.name)
            };
            let outcome = self.outcome(&path, problem.name.is_empty())?;
            self.problems.push(CommitProblem {
                path: path.as_bytes().to_vec(),
                reason: problem.reason,
                outcome,
            });
        }
        self.add(&directory.listing())
    }

    /// Return the substitute for an unreadable entry: kept if its old entry stays, or the last commit has a directory
    /// there.  `is_own` means the attributes of a directory itself.
    fn outcome(&mut self, path: &RelPath, is_own: bool) -> Result<Substitute> {
        if is_own {
            return Ok(Substitute::Clamped);
        }
        let is_directory = match &mut self.past {
            Some(past) if !self.kept.contains(path.as_bytes()) => past.listing(path)?.is_some(),
            Some(_) => true,
            None => false,
        };
        Ok(if is_directory {
            Substitute::Kept
        } else {
            Substitute::LeftOut
        })
    }

    /// Replace the lines of unsure names in a directory by those of the last commit; a name without a line there
    /// is added to `waiting`, as a possible directory.
    fn put_past_leaves(
        &mut self,
        directory: &mut Directory,
        unsure: &BTreeSet<Vec<u8>>,
    ) -> Result<()> {
        let path = RelPath::trusted(directory.path.clone());
        let mut old = Vec::new();
        for name in unsure {
            let path = path.join(name);
            if let Some(leaf) = self
                .past
                .as_mut()
                .map_or(Ok(None), |past| past.leaf(&path))?
            {
                self.kept.insert(path.as_bytes().to_vec());
                old.push(leaf);
            } else {
                // If it was a directory in the last commit, everything below it stays as well.
                self.waiting.insert(order_key(path.as_bytes()), path);
            }
        }
        let mut merged = Vec::new();
        for leaf in raw_leaves(&directory.leaves, &directory.digests) {
            let name = unescape(leaf.name)?;
            if !unsure.contains(&*name) {
                merged.push((name, leaf, Cow::Borrowed(leaf.line)));
            }
        }
        for leaf in old
            .iter()
            .flat_map(|(line, digest)| raw_leaves(line, digest))
        {
            let line = self.without_dangling_link(&path, &leaf)?;
            merged.push((unescape(leaf.name)?, leaf, line));
        }
        merged.sort_by(|(name, ..), (other, ..)| name.cmp(other));
        let (mut leaves, mut column) = (Vec::new(), Vec::new());
        for (_, leaf, line) in &merged {
            leaves.extend_from_slice(line);
            let size = column.len() + DIGEST_BYTES * usize::from(leaf.is_file);
            column.extend_from_slice(leaf.digest);
            column.resize(size, 0);
        }
        (directory.leaves, directory.digests) = (leaves, column);
        Ok(())
    }

    /// Keep the last commit's entries at `path` and below; false if there was no directory.  A hardlink whose leader
    /// is another file now loses its link.
    fn keep_below(&mut self, path: &RelPath) -> Result<bool> {
        let Some(past) = &mut self.past else {
            return Ok(false);
        };
        let snapshot = past.snapshot();
        let mut subtree = past.subtree(path)?;
        let mut any = false;
        while let Some(listing) = subtree.next_of(&snapshot, |_| true)? {
            if !any {
                self.kept.insert(path.as_bytes().to_vec());
                any = true;
            }
            let mut leaves = Cow::Borrowed(&*listing.leaves);
            if leaves.windows(LINK.len()).any(|part| part == LINK) {
                let mut lines = Vec::new();
                for leaf in raw_leaves(&listing.leaves, &listing.digests) {
                    lines.extend_from_slice(&self.without_dangling_link(&listing.path, &leaf)?);
                }
                leaves = Cow::Owned(lines);
            }
            self.add(&write::ListingText {
                path: listing.path.as_bytes(),
                attributes: &listing.attributes,
                leaves: &leaves,
                digests: &listing.digests,
            })?;
        }
        Ok(any)
    }

    /// Return the line, without its hardlink field if the leader is another file now.  A hardlink that stays is added to `pairs`.
    fn without_dangling_link<'b>(
        &mut self,
        directory: &RelPath,
        leaf: &RawLeaf<'b>,
    ) -> Result<Cow<'b, [u8]>> {
        let line = Cow::Borrowed(leaf.line);
        let entry = Leaves::new(directory, leaf.line, leaf.digest)
            .next()
            .transpose()?;
        let Some(Body::File {
            link: Some(leader), ..
        }) = entry.map(|entry| entry.body)
        else {
            return Ok(line);
        };
        let (alone, _) = split_link(leaf.line);
        let state = State {
            fields: alone.get(leaf.name.len()..).unwrap_or_default(),
            digest: leaf.digest,
        };
        let is_kept = |path: &[u8]| self.kept.contains(path);
        if is_kept(leader.as_bytes())
            || leader.ancestors().any(is_kept)
            || self.groups.leads(leader.as_bytes(), &state)
        {
            let name = directory.join(&unescape(leaf.name)?);
            put_pair(&mut self.pairs, leader.as_bytes(), name.as_bytes());
            return Ok(line);
        }
        Ok(Cow::Owned([alone, b"\n"].concat()))
    }

    /// Count a listing, and add it to the layout.
    fn add(&mut self, listing: &write::ListingText<'_>) -> Result<()> {
        self.directories += u64::from(!listing.attributes.is_empty());
        self.totals.add(Totals::of(listing.leaves));
        self.layout.add(listing, self.writer)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use huai_format::snapshots::Snapshot;
    use huai_git::object::Kind;

    use super::*;
    use crate::scan::directory::{Problem as Noticed, Reason};

    #[derive(Clone, Default)]
    struct Objects(HashMap<Oid, Vec<u8>>);

    impl ObjectReader for Objects {
        fn read(&self, oid: &Oid, _: Kind) -> Result<Vec<u8>> {
            self.0
                .get(oid)
                .cloned()
                .ok_or_else(|| Error::new("a missing object"))
        }
    }

    impl ObjectWriter for Objects {
        fn write(&mut self, kind: Kind, content: &[u8]) -> Result<Oid> {
            let oid = Oid::of_own(kind, content);
            self.0.insert(oid, content.to_vec());
            Ok(oid)
        }
    }

    fn directory(path: &str, leaves: &str) -> Directory {
        Directory {
            path: path.into(),
            attributes: b"0".to_vec(),
            leaves: leaves.into(),
            ..Directory::default()
        }
    }

    /// Make a directory with unreadable names.
    fn troubled(path: &str, leaves: &str, names: &[&str], reason: Reason) -> Directory {
        let problem = |name: &&str| Noticed {
            name: name.as_bytes().to_vec(),
            reason,
        };
        Directory {
            problems: names.iter().map(problem).collect(),
            ..directory(path, leaves)
        }
    }

    /// Make a directory with the file `x`, a name of inode 7; `state` sets its size and digest.
    fn linked(path: &str, links: u32, state: u8) -> Directory {
        let mut record = vec![0; 64];
        record[8] = 7;
        record[40..44].copy_from_slice(&links.to_le_bytes());
        Directory {
            identities: record,
            digests: vec![state; DIGEST_BYTES],
            hardlinks: true,
            ..directory(path, "x\t5\t1\n")
        }
    }

    struct Built {
        tree: Oid,
        objects: Objects,
        problems: Vec<(String, Substitute)>,
    }

    impl Built {
        /// Commit frames after the commit `past`.
        fn of(frames: Vec<Directory>, past: Option<&Self>) -> Self {
            let mut objects = Objects::default();
            let lookup = past.map(|past| Lookup::new(past.snapshot(), 10_000));
            let mut builder = Builder::new(b"", lookup, &mut objects);
            for directory in frames {
                builder
                    .add_frame(Frame::Read(directory), &Part::default())
                    .unwrap();
            }
            let tree = builder.finish().unwrap();
            let problem =
                |it: &CommitProblem| (String::from_utf8_lossy(&it.path).into(), it.outcome);
            let problems = builder.problems.iter().map(problem).collect();
            Self {
                tree,
                objects,
                problems,
            }
        }

        fn snapshot(&self) -> Snapshot<Objects> {
            Snapshot {
                reader: self.objects.clone(),
                tree: self.tree,
            }
        }

        /// Return every directory with its leaves.
        fn listings(&self) -> Vec<String> {
            let snapshot = self.snapshot();
            let mut walk = Walk::new(&snapshot, EntryLimit::new(10_000));
            let mut listings = Vec::new();
            while let Some(listing) = walk.next(&snapshot).unwrap() {
                let text = [listing.path.as_bytes(), b": ", &listing.leaves].concat();
                listings.push(String::from_utf8(text).unwrap());
            }
            listings
        }
    }

    const IO: Reason = Reason::KeepsChanging;

    #[test]
    fn an_old_entry_stays_in_its_place_and_a_new_one_is_left_out() {
        let mut old = directory("", "a\t1\t0\nb\t2\t0\nc\t3\t0\n");
        old.digests = [[1; 32], [2; 32], [3; 32]].concat();
        let past = Built::of(vec![old], None);
        let mut now = troubled("", "a\t5\t0\nd\t4\t0\n", &["b", "e"], IO);
        now.digests = [[5; 32], [4; 32]].concat();
        let built = Built::of(vec![now], Some(&past));
        assert_eq!(built.listings(), [": a\t5\t0\nb\t2\t0\nd\t4\t0\n"]);
        let mut root = directory("", "a\t5\t0\nb\t2\t0\nd\t4\t0\n");
        root.digests = [[5; 32], [2; 32], [4; 32]].concat();
        assert_eq!(built.tree, Built::of(vec![root], None).tree);
        let outcomes = [
            ("b".into(), Substitute::Kept),
            ("e".into(), Substitute::LeftOut),
        ];
        assert_eq!(built.problems, outcomes);
    }

    #[test]
    fn names_that_were_directories_keep_all_below_in_tree_order() {
        // Some file systems do not list types, and stat(2) failed.
        for size in [3, 400] {
            let line = |number| format!("{number:03}\t1\t0\n");
            let lines = (0..size).map(line).collect::<Vec<_>>().concat();
            let old = ["", "a", "a/x", "b", "b/y", "m", "m/below", "z"]
                .map(|path| directory(path, if path == "m/below" { &lines } else { "" }));
            let past = Built::of(old.into(), None);
            let frames = vec![
                troubled("", "", &["m", "zz"], IO),
                troubled("a", "", &["x"], IO),
                troubled("b", "", &["y"], IO),
                directory("z", ""),
            ];
            let built = Built::of(frames, Some(&past));
            assert_eq!(built.tree, past.tree);
            let left_out: Vec<_> = built.problems.iter().map(|(_, it)| *it).collect();
            assert_eq!(
                left_out,
                [
                    Substitute::Kept,
                    Substitute::LeftOut,
                    Substitute::Kept,
                    Substitute::Kept
                ]
            );
        }
    }

    #[test]
    fn a_time_of_a_directory_that_does_not_fit_keeps_nothing_back() {
        let past = Built::of(vec![directory("", ""), directory("d", "")], None);
        let now = troubled("d", "new\t1\t0\n", &[""], Reason::Time);
        let built = Built::of(vec![directory("", ""), now], Some(&past));
        assert_eq!(built.listings(), [": ", "d: new\t1\t0\n"]);
        assert_eq!(built.problems, [("d".into(), Substitute::Clamped)]);
    }

    #[test]
    fn a_file_where_a_directory_cannot_be_read_is_gone() {
        let past = Built::of(vec![directory("", "a\t1\t0\nb\t1\t0\n")], None);
        let mut objects = Objects::default();
        let mut builder = Builder::new(b"", Some(Lookup::new(past.snapshot(), 9)), &mut objects);
        builder
            .add_frame(Frame::Read(directory("", "a\t1\t0\n")), &Part::default())
            .unwrap();
        let path = b"b".to_vec();
        builder
            .add_frame(Frame::Unreadable { path, reason: IO }, &Part::default())
            .unwrap();
        assert_eq!(builder.totals.files, 1);
        assert_eq!(
            builder.problems.first().unwrap().outcome,
            Substitute::LeftOut
        );
    }

    /// Return the lines of all directories but the root.
    fn lines(frames: Vec<Directory>) -> Vec<String> {
        let frames = std::iter::once(directory("", "")).chain(frames).collect();
        Built::of(frames, None).listings().split_off(1)
    }

    #[test]
    fn names_of_one_state_are_a_group_as_long_as_the_inode_has_names() {
        let group = vec![
            linked("a", 2, 1),
            linked("b", 2, 1),
            linked("c", 2, 1),
            linked("d", 2, 1),
        ];
        let expected = [
            "a: x\t5\t1\n",
            "b: x\t5\t1\th../a/x\n",
            "c: x\t5\t1\n",
            "d: x\t5\t1\th../c/x\n",
        ];
        assert_eq!(lines(group), expected);
        let changed = vec![linked("a", 2, 1), linked("b", 2, 2)];
        assert_eq!(lines(changed), ["a: x\t5\t1\n", "b: x\t5\t1\n"]);
    }

    #[test]
    fn a_leader_that_could_not_be_read_does_not_lead() {
        // It is replaced by its old entry, which may be a different file.
        let mut unsure = linked("a", 3, 1);
        unsure.problems = troubled("", "", &["x"], IO).problems;
        let result = lines(vec![unsure, linked("b", 3, 1), linked("c", 3, 0)]);
        assert_eq!(result, ["a: ", "b: x\t5\t1\n", "c: x\t5\t1\th../b/x\n"]);
    }
}
