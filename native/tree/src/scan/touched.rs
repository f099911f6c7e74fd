//! Examines the listed paths of a tree, and nothing else.
//!
//! The directory of each path is examined too, with all directories above: a directory that no
//! longer is one is found there, and the time of a directory shows that names were added or
//! removed.  A symlink is never followed: listed paths behind one do not exist.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use huai_export::change_list::Touched;
use huai_format::amend::Amendment;
use huai_format::escape::unescape;
use huai_format::path::{basename, is_within, join, order_key, parent};
use huai_git::find::split_before;
use huai_sys::call::Outcome;
use huai_sys::error::Errno;

use super::directory::{Directory, Frame, ReadDirectory, Reader, Reason, Tree};

/// A path with its components separated by NUL, so that comparing bytes is tree order.
type Key = Vec<u8>;

/// The result of examining paths.
#[derive(Debug, Default)]
pub struct LookResult {
    /// The existing directories, or parts of large ones, in tree order: of most only the names
    /// that were requested.
    pub directories: Vec<Directory>,
    /// The names of each directory that have no lines.
    pub others: Vec<Others>,
    /// The unreadable directories.
    pub unreadable: Vec<(Vec<u8>, Reason)>,
}

/// The names in a directory that have no lines.
#[derive(Debug, Default)]
pub struct Others {
    /// Directories.
    pub directories: BTreeSet<Vec<u8>>,
    /// Names at which nothing is, or what no snapshot holds.
    pub gone: BTreeSet<Vec<u8>>,
    /// Names of which nothing is known.
    pub unsure: BTreeSet<Vec<u8>>,
    /// All of the directory was read.
    pub is_whole: bool,
}

/// The paths at which the snapshot may have something else.
#[derive(Debug, Default)]
pub struct Replaced {
    /// Paths that are not directories, or were read completely: entries below may be gone too.
    pub(crate) with_all_below: HashSet<Vec<u8>>,
    /// Directories that may have been files.
    pub(crate) alone: HashSet<Vec<u8>>,
}

/// The names to examine in one directory.
#[derive(Debug, Default)]
struct LookRequest {
    names: BTreeSet<Vec<u8>>,
    all_below: bool,
}

/// Examine all `touched` paths; of those below what is not a directory, only that is examined.
/// `CANCELED` after a stop.
pub(crate) fn look(tree: &Tree<'_>, touched: &[Touched]) -> Outcome<LookResult> {
    let mut examination = Examination {
        tree,
        reader: Reader::default(),
        unread: HashSet::from([Vec::new()]),
        result: LookResult::default(),
    };
    let mut done: Option<Vec<u8>> = None;
    for (key, request) in plan(touched) {
        let path = path_of(&key);
        if done.as_ref().is_some_and(|top| is_within(&path, top)) {
            continue;
        }
        if !examination.unread.remove(&path) {
            continue;
        }
        if request.all_below {
            examination.read_below(path.clone())?;
            done = Some(path);
        } else {
            examination.examine(&path, &request.names)?;
        }
    }
    Ok(examination.result)
}

/// Return each directory with the names to examine, in tree order; every directory above a listed path is among them.
fn plan(touched: &[Touched]) -> BTreeMap<Key, LookRequest> {
    let mut plan: BTreeMap<Key, LookRequest> = BTreeMap::new();
    for each in touched {
        let mut path = each.path.as_bytes();
        let request = plan.entry(order_key(path)).or_default();
        request.all_below |= each.all_below;
        while !path.is_empty() {
            let above = plan.entry(order_key(parent(path))).or_default();
            if !above.names.insert(basename(path).to_vec()) {
                break;
            }
            path = parent(path);
        }
    }
    plan
}

struct Examination<'a> {
    tree: &'a Tree<'a>,
    reader: Reader,
    /// The directories that were found and are still to be read.
    unread: HashSet<Vec<u8>>,
    result: LookResult,
}

impl Examination<'_> {
    /// Examine `names` in the directory at `path`, and mark its subdirectories as unread; nothing if it is missing.
    fn examine(&mut self, path: &[u8], names: &BTreeSet<Vec<u8>>) -> Outcome<()> {
        let reading = self.reader.examine(self.tree, path, names)?;
        let Some(found) = reading.frame else {
            return Ok(());
        };
        let directories = children(&reading.children);
        for name in &directories {
            self.unread.insert(join(path, name));
        }
        self.add_directory(found, directories, Some(names))
    }

    /// Read a directory and everything below it.
    fn read_below(&mut self, top: Vec<u8>) -> Outcome<()> {
        let mut pending = vec![top];
        while let Some(path) = pending.pop() {
            let reading = self.reader.read(self.tree, &path)?;
            let Some(found) = reading.frame else {
                continue;
            };
            let directories = children(&reading.children);
            pending.extend(directories.iter().rev().map(|name| join(&path, name)));
            self.add_directory(found, directories, None)?;
        }
        Ok(())
    }

    /// Add a directory, or note that it is unreadable; `names` of it were examined, or all.  `CANCELED` after a stop.
    fn add_directory(
        &mut self,
        found: ReadDirectory,
        directories: BTreeSet<Vec<u8>>,
        names: Option<&BTreeSet<Vec<u8>>>,
    ) -> Outcome<()> {
        if self.tree.stop.is_set() {
            return Err(Errno::CANCELED);
        }
        let mut other_names = Others {
            directories,
            is_whole: names.is_none(),
            ..Others::default()
        };
        match found {
            ReadDirectory::Frame(Frame::Unreadable { path, reason }) => {
                self.result.unreadable.push((path, reason));
            }
            ReadDirectory::Frame(Frame::Shard { .. }) => {} // only in a scan with shards
            ReadDirectory::Frame(Frame::Read(directory)) => {
                other_names.judge(&directory, names);
                self.result.push(directory, other_names);
            }
            ReadDirectory::Large(mut large) => {
                while let Some(part) = large.next()? {
                    other_names.judge(&part, names);
                    self.result.push(part, std::mem::take(&mut other_names));
                    other_names.is_whole = true;
                }
            }
        }
        Ok(())
    }
}

impl Others {
    /// Add names in an unknown state to `unsure`; set `gone` to those of the examined `names` at
    /// which nothing is, unless all were examined (`None`).
    fn judge(&mut self, directory: &Directory, names: Option<&BTreeSet<Vec<u8>>>) {
        for problem in &directory.problems {
            if problem.is_of_entry() {
                self.unsure.insert(problem.name.clone());
            }
        }
        let Some(names) = names else { return };
        let leaves = leaf_names(&directory.leaves);
        let is_there = |name: &&Vec<u8>| {
            leaves.contains(*name)
                || self.directories.contains(*name)
                || self.unsure.contains(*name)
        };
        self.gone = names
            .iter()
            .filter(|name| !is_there(name))
            .cloned()
            .collect();
    }
}

impl LookResult {
    fn push(&mut self, directory: Directory, others: Others) {
        self.directories.push(directory);
        self.others.push(others);
    }

    /// Return the examined paths that may have changed their type.
    pub fn replaced(&self) -> Replaced {
        let mut replaced = Replaced::default();
        for (directory, others) in self.directories.iter().zip(&self.others) {
            let leaves = leaf_names(&directory.leaves);
            let names = leaves.iter().chain(&others.gone).chain(&others.unsure);
            let path = |name: &Vec<u8>| join(&directory.path, name);
            replaced.with_all_below.extend(names.map(path));
            replaced.alone.extend(others.directories.iter().map(path));
            if others.is_whole {
                replaced.with_all_below.insert(directory.path.clone());
            }
        }
        replaced
    }

    /// Return one amendment a directory, in tree order, once the digests are set.
    pub fn amendments(&self) -> Vec<Amendment> {
        let mut amendments: Vec<Amendment> = Vec::new();
        for (directory, others) in self.directories.iter().zip(&self.others) {
            if !directory.is_continuation() {
                amendments.push(Amendment {
                    path: directory.path.clone(),
                    attributes: directory.attributes.clone(),
                    directories: others.directories.clone(),
                    gone: others.gone.clone(),
                    is_whole: others.is_whole,
                    ..Amendment::default()
                });
            }
            let Some(last) = amendments.last_mut() else {
                continue;
            };
            last.leaves.extend_from_slice(&directory.leaves);
            last.unsure.extend(others.unsure.iter().cloned());
            last.digests.extend_from_slice(&directory.digests);
        }
        amendments
    }
}

/// Return the raw names of leaves.
fn leaf_names(leaves: &[u8]) -> HashSet<Vec<u8>> {
    let lines = leaves.split(|byte| *byte == b'\n');
    let names = lines.map(|line| split_before(line, b'\t').0);
    let names = names.filter(|name| !name.is_empty());
    names
        .filter_map(|name| Some(unescape(name).ok()?.into_owned()))
        .collect()
}

/// Return names that are each ended by NUL.
fn children(names: &[u8]) -> BTreeSet<Vec<u8>> {
    let names = names.split(|byte| *byte == 0);
    names
        .filter(|name| !name.is_empty())
        .map(<[u8]>::to_vec)
        .collect()
}

fn path_of(key: &[u8]) -> Vec<u8> {
    let byte = |byte: &u8| if *byte == 0 { b'/' } else { *byte };
    key.iter().map(byte).collect()
}
