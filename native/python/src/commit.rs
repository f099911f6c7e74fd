//! The reader of the tree of a module for a commit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use huai_export::change_list::Touched;
use huai_format::entries::Digest;
use huai_format::path::RelPath;
use huai_format::snapshots::Lookup;
use huai_format::write::Totals;
use huai_sys::error::Errno;
use huai_sys::stop::Stop;
use huai_tree::commit::{
    CommitProblem, Digesting, Failure, ListedPaths, Mounts, Part, Policy, Read, Remarks, Result,
    Shard, WholeCommit, WholeOptions, read_whole, relink as set_links,
};
use huai_tree::digests::{Digests, ListedDigests};
use huai_tree::hashing::contents::Contents;
use huai_tree::scan::directory::{ScanOptions, View};
use huai_tree::scan::whole_tree::Scan;
use huai_tree::walk::owners::OwnerKind;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::hashing::block_index::BlockIndex;
use crate::packs::lent::{LentSnapshot, Reader};
use crate::packs::read::parse_oid;
use crate::packs::writer::Writer;
use crate::scan::calls::{Calls, Owners, number, parse_patterns};
use crate::scan::change_list::ChangeList;
use crate::snapshots::compare::{Changes, changes_of};
use crate::sys::errors::{raise, refuse};
use crate::sys::guarded::Guarded;
use crate::sys::pace::Pace;
use crate::sys::wait::wait;

/// The most unknown paths that are returned.
const SHOWN: usize = 20;

/// Files, directories, symlinks, bytes.
pub(crate) type Counts = (u64, u64, u64, u64);
/// Paths with a reason and an outcome; of each kind of remark how many, and the first paths; files
/// that were read, their bytes, and those that have no digest because of their holes.
type CommitReport = (
    Vec<(Vec<u8>, i32, u8)>,
    Vec<(u8, u64, Vec<Vec<u8>>)>,
    (u64, u64, Vec<Vec<u8>>),
);

/// The top's view; the inode and leader of files with names elsewhere; the shards.
type Edges = ((u64, u64), Vec<(Vec<u8>, Vec<u8>)>, Vec<Vec<u8>>);
/// The id of a tree; its totals, and the number of entries that no snapshot can hold; the report,
/// the mount points, and what other parts need.
type WholeTree = (
    Vec<u8>,
    (Counts, u64),
    CommitReport,
    BTreeSet<Vec<u8>>,
    Edges,
);

/// The part of the tree to read: its top, and path, view, and tree with entries of each shard
/// below it, with the reader of their objects.
#[derive(FromPyObject)]
struct LentPart(Vec<u8>, Vec<LentShard>, Option<LentSnapshot>);

/// A shard: its path, its view, and its tree with the entries of that; `None` if it failed.
#[derive(FromPyObject)]
struct LentShard(Vec<u8>, (u64, u64), Option<(Vec<u8>, u64)>);

impl LentPart {
    /// Convert it to the engine's part; an exception for an id of the wrong length.
    fn part(self) -> PyResult<Part<Reader>> {
        let mut shards = BTreeMap::new();
        for LentShard(path, (file_system, inode), tree) in self.1 {
            let view = View { file_system, inode };
            let tree = tree.map(|(tree, entries)| PyResult::Ok((parse_oid(&tree)?, entries)));
            let tree = tree.transpose()?;
            shards.insert(path, Shard { view, tree });
        }
        Ok(Part {
            top: self.0,
            shards,
            objects: self.2.map(|lent| lent.snapshot),
        })
    }
}

/// The folder of known digests, the parameters of hashing, and functions that Python lends.
#[derive(FromPyObject)]
struct DigestOptions {
    folder: Vec<u8>,
    more_folders: Vec<Vec<u8>>,
    threads: usize,
    large: Option<u64>,
    keep: Py<PyAny>,
    volatile: Py<PyAny>,
    later: bool,
    pace: Option<Py<Pace>>,
    holes: Option<u64>,
    damage: Vec<(Vec<u8>, u64, i64, Digest)>,
}

/// A reader of the tree of a module, for one commit.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct TreeReader {
    scan: Guarded<Scan>,
    /// Remark what others may not read.
    check_readable: bool,
    owners: Option<Owners>,
    /// None if no file gets a digest.
    digests: Option<(DigestOptions, Contents)>,
    /// Digests of files of a list that are not kept yet.
    unkept: Guarded<Option<ListedDigests>>,
    /// A Python function that makes huai's exceptions.
    explain: Py<PyAny>,
}

#[pymethods]
impl TreeReader {
    /// Open `root`, for hashing too if there are `digests`.  `scan` has the patterns, the threads, true to stay on
    /// one file system, true to remark what others cannot read, and the directory that `root` is a snapshot of.
    #[new]
    fn new(
        py: Python<'_>,
        root: &[u8],
        scan: (Vec<Vec<u8>>, usize, bool, bool, Option<Vec<u8>>),
        owners: Option<Owners>,
        digests: Option<DigestOptions>,
        explain: Py<PyAny>,
    ) -> PyResult<Self> {
        let (patterns, threads, one_file_system, check_readable, live) = scan;
        let options = ScanOptions {
            patterns: parse_patterns(patterns),
            one_file_system,
            owners: owners.is_some(),
            threads,
        };
        let how = digests.as_ref().map(|it| (it.threads, it.holes));
        let (scan, contents) = wait(py, |_| {
            let mut scan = Scan::open(root, options)?;
            if let Some(live) = live {
                scan = scan.of_snapshot(&live)?;
            }
            let open = |(threads, holes): (_, Option<_>)| {
                Contents::open(root, threads, holes.unwrap_or(u64::MAX))
            };
            huai_sys::error::Result::Ok((scan, how.map(open).transpose()?))
        })?;
        Ok(Self {
            scan: Guarded::new(scan),
            check_readable,
            owners,
            digests: digests.zip(contents),
            unkept: Guarded::default(),
            explain,
        })
    }

    /// Scan the part `scope` and write its tree; the last commit's entries stay where something cannot be read.
    /// Returns the tree, its totals, the report, the mount points, and what other parts need.
    #[expect(clippy::too_many_arguments, reason = "Python's are by position")]
    fn read_whole(
        &self,
        py: Python<'_>,
        past: Option<LentSnapshot>,
        mounts: (BTreeSet<Vec<u8>>, bool, bool),
        keep_pairs: &Bound<'_, PyAny>,
        writer: Writer,
        scope: LentPart,
    ) -> PyResult<WholeTree> {
        let scope = scope.part()?;
        let past = past.map(LentSnapshot::lookup);
        let keep_pairs = keep_pairs.clone().unbind();
        let mounts = Mounts::new(mounts.0, mounts.1, mounts.2);
        let (whole, read) = self.call(py, |calls, stop| {
            let options = WholeOptions {
                part: scope,
                mounts,
                check_readable: self.check_readable,
                keep_pairs: &|pairs| calls.call_with(&keep_pairs, pairs),
                look_up: &|kind, id| self.owner(kind, id, calls),
                stop,
            };
            let mut scan = self.scan.lock();
            self.digesting(calls, stop, |how| {
                let until = &mut writer.until(stop);
                let Some((how, digesting)) = how else {
                    return read_whole(&mut scan, past, None, options, until);
                };
                let digests = Digests::open(&how.folder, &how.more_folders);
                let mut digests = digests.map_err(Failure::Digests)?;
                read_whole(
                    &mut scan,
                    past,
                    Some((&mut digests, digesting)),
                    options,
                    until,
                )
            })
        })?;
        let WholeCommit {
            totals,
            directories,
            skipped,
            ..
        } = whole;
        Ok((
            whole.tree.as_bytes().to_vec(),
            (counts(totals, directories), skipped),
            report(whole.problems, whole.remarks, read),
            whole.mounts,
            (
                (whole.view.file_system, whole.view.inode),
                whole
                    .open
                    .into_iter()
                    .map(|(inode, leader)| (inode.to_vec(), leader))
                    .collect(),
                whole.grafted,
            ),
        ))
    }

    /// Read the paths that a list names, and write the tree of `past` with them; `None` if a file has names that are
    /// unknown.  Returns the tree, what was added and removed, the changes unless directories may have moved, the report,
    /// lines of the record of hardlink groups, and the number of listed paths that never existed, with the first.
    #[expect(clippy::type_complexity, reason = "a row of results")]
    fn read_listed(
        &self,
        py: Python<'_>,
        past: LentSnapshot,
        named: (Py<ChangeList>, bool, Vec<u8>),
        check_foreign: &Bound<'_, PyAny>,
        writer: Writer,
    ) -> PyResult<
        Option<(
            Vec<u8>,
            (Counts, Counts, Option<Changes>),
            CommitReport,
            Vec<u8>,
            (usize, Vec<Vec<u8>>),
        )>,
    > {
        let mut past = past.lookup();
        let check_foreign = check_foreign.clone().unbind();
        let (changes, names_links, record) = named;
        let touched = changes.get().touched().clone();
        let (listed, read) = self.call(py, |calls, stop| {
            let check = |found: &ListedPaths| match &*found.foreign() {
                [] => Ok(()),
                foreign => {
                    let check =
                        |py: Python<'_>| check_foreign.call1(py, (foreign.to_vec(),)).map(drop);
                    calls.call(check).map_err(|_| Failure::Stopped)
                }
            };
            let list = (&*touched, &*record, check);
            let (found, read, digests) = self.look(list, Some(&mut past), calls, stop)?;
            let finished = digests.map_or(Ok(()), |mut digests| digests.finish());
            finished.map_err(Failure::Digests)?;
            let remarks = Remarks::new(self.check_readable);
            let until = &mut writer.until(stop);
            let listed = found.commit(&mut past, (&touched, names_links), remarks, until)?;
            Ok((listed, read))
        })?;
        Ok(listed.map(|mut listed| {
            let amended = &listed.amended;
            let added = counts(amended.added, amended.added_directories);
            let removed = counts(amended.removed, amended.removed_directories);
            let changes = changes_of(amended.counts);
            let changes = amended.ended.is_empty().then_some(changes);
            let unknown = listed.unknown.len();
            listed.unknown.truncate(SHOWN);
            (
                amended.tree.as_bytes().to_vec(),
                (added, removed, changes),
                report(listed.problems, listed.remarks, read),
                listed.pairs,
                (unknown, listed.unknown),
            )
        }))
    }

    /// Add the digests of the files that a list names to `into`.  Returns the files and bytes read, the files with
    /// too many holes, and the paths that could not be read with their reasons.  The digests are stored by
    /// `keep_digests` only.
    #[expect(clippy::type_complexity, reason = "a row of results")]
    fn read_digests(
        &self,
        py: Python<'_>,
        changes: &Bound<'_, ChangeList>,
        record: &[u8],
    ) -> PyResult<(
        Vec<(Vec<u8>, Vec<u8>, Vec<u8>)>,
        (u64, u64, Vec<Vec<u8>>),
        Vec<(Vec<u8>, i32)>,
    )> {
        let touched = changes.get().touched().clone();
        let (found, read) = self.call(py, |calls, stop| {
            let list = (&*touched, record, |_: &ListedPaths| Ok(()));
            let (found, read, digests) = self.look(list, None, calls, stop)?;
            *self.unkept.lock() = digests;
            Ok((found, read))
        })?;
        let directories = found.directories().filter(|each| !each.2.is_empty());
        let directories = directories
            .map(|(path, leaves, digests)| (path.to_vec(), leaves.to_vec(), digests.to_vec()));
        let directories = directories.collect();
        let unread = found
            .unread
            .into_iter()
            .map(|(path, reason)| (path, number(reason)));
        Ok((
            directories,
            (read.files, read.bytes, read.holes),
            unread.collect(),
        ))
    }

    /// Store the digests of the last `read_digests`, if any, for later commits.
    fn keep_digests(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, |_, _| {
            let mut unkept = self.unkept.lock();
            let finished = unkept.as_mut().map_or(Ok(()), ListedDigests::finish);
            finished.map_err(Failure::Digests)
        })
    }
}

impl TreeReader {
    /// Call `work` detached from Python; its failure, or an exception of a lent function, is raised.
    fn call<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Calls, &Stop) -> Result<T> + Send,
    ) -> PyResult<T> {
        let calls = Calls::default();
        let done = wait(py, |stop| PyResult::Ok(work(&calls, stop)))?;
        match calls.raised() {
            Some(error) => Err(error),
            None => done.map_err(|failure| self.raise(py, failure)),
        }
    }

    /// Convert a failure to an exception, which `explain` makes for the tree, the digests and the
    /// root.
    fn raise(&self, py: Python<'_>, failure: Failure) -> PyErr {
        let explained = match failure {
            Failure::Tree(error) => self.explain.call1(py, ("tree", raise(py, &error))),
            Failure::Digests(error) => self.explain.call1(py, ("digests", raise(py, &error))),
            Failure::Root(reason) => self.explain.call1(py, ("root", reason.map_or(0, number))),
            Failure::Contents(error) => return raise(py, &error),
            Failure::Format(error) => return refuse(error),
            Failure::Stopped => return PyRuntimeError::new_err("stopped without an exception"),
        };
        explained.map_or_else(
            |error| error,
            |error| PyErr::from_value(error.into_bound(py)),
        )
    }

    /// Return the name of an owner, empty if no owners are read; `CANCELED` after an exception,
    /// which `calls` keeps.
    fn owner(
        &self,
        kind: OwnerKind,
        id: u32,
        calls: &Calls,
    ) -> std::result::Result<Vec<u8>, Errno> {
        let owners = self.owners.as_ref();
        owners.map_or_else(|| Ok(Vec::new()), |owners| owners.name(kind, id, calls))
    }

    /// Look at the paths of a list, and find the digests there if `check` accepts them.  Returns
    /// the paths, what was read, and the table of digests, which is not saved yet; `None` without
    /// digests.
    fn look(
        &self,
        (touched, record, check): (&[Touched], &[u8], impl FnOnce(&ListedPaths) -> Result<()>),
        past: Option<&mut Lookup<Reader>>,
        calls: &Calls,
        stop: &Stop,
    ) -> Result<(ListedPaths, Read, Option<ListedDigests>)> {
        let look_up = |kind, id| self.owner(kind, id, calls);
        let mut paths = ListedPaths::look(&self.scan.lock(), touched, record, &look_up, stop)?;
        check(&paths)?;
        let (digests, read) = self.digesting(calls, stop, |how| {
            let Some((how, digesting)) = how else {
                return Ok(None);
            };
            let mut digests = ListedDigests::open(&how.folder).map_err(Failure::Digests)?;
            paths.digest(&mut digests, digesting, past, stop)?;
            Ok(Some(digests))
        })?;
        Ok((paths, read, digests))
    }

    /// Call `work` with the options of digests and a hasher of files, at the pace of the options, or with `None` if
    /// there are no digests; returns the counts of what was read, too.
    fn digesting<T>(
        &self,
        calls: &Calls,
        stop: &Stop,
        work: impl FnOnce(Option<(&DigestOptions, &mut Digesting<'_>)>) -> Result<T>,
    ) -> Result<(T, Read)> {
        let Some((options, contents)) = &self.digests else {
            return Ok((work(None)?, Read::default()));
        };
        if let Some(pace) = &options.pace {
            stop.hold_to(&Arc::clone(&pace.get().0));
        }
        let policy = Policy {
            later: options.later,
            damage: options.damage.iter().cloned().collect(),
            is_volatile: &|path| {
                let ask = |py: Python<'_>| {
                    options
                        .volatile
                        .call1(py, (PyBytes::new(py, path),))?
                        .extract(py)
                };
                calls.call(ask)
            },
            large: options.large.unwrap_or(u64::MAX),
            keep: &|index| calls.call(|py| options.keep.call1(py, (BlockIndex(index),)).map(drop)),
        };
        let mut digesting = Digesting::new(contents, &policy);
        let done = work(Some((options, &mut digesting)))?;
        Ok((done, digesting.read))
    }
}

/// Write `past` with the hardlink fields of files with names in several parts; `groups` has all names of each.
/// Returns its root tree, and lines of the record of hardlink groups.
#[pyfunction]
pub(crate) fn relink(
    py: Python<'_>,
    past: LentSnapshot,
    groups: Vec<Vec<Vec<u8>>>,
    writer: Writer,
) -> PyResult<(Vec<u8>, Vec<u8>)> {
    let groups = groups.into_iter();
    let groups = groups.map(|paths| paths.into_iter().map(RelPath::trusted).collect());
    let (tree, pairs) = wait(py, |stop| {
        set_links(
            &mut past.lookup(),
            groups.collect(),
            &mut writer.until(stop),
        )
    })?;
    Ok((tree.as_bytes().to_vec(), pairs))
}

/// Return the numbers of files, directories, symlinks and bytes.
pub(crate) fn counts(totals: Totals, directories: u64) -> Counts {
    (totals.files, directories, totals.symlinks, totals.bytes)
}

/// Convert problems, remarks and the counts of what was read, as `_native.pyi` lists them.
fn report(problems: Vec<CommitProblem>, remarks: Remarks, read: Read) -> CommitReport {
    let problem = |it: CommitProblem| (it.path, number(it.reason), it.outcome as u8);
    let remarks = remarks.found.into_iter();
    (
        problems.into_iter().map(problem).collect(),
        remarks
            .map(|(kind, count, shown)| (kind as u8, count, shown))
            .collect(),
        (read.files, read.bytes, read.holes),
    )
}
