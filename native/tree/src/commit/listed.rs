//! Commits the paths of lists: their present state, and the last commit for the rest.

use std::collections::HashSet;

use huai_export::change_list::Touched;
use huai_format::amend::{Amended, amend};
use huai_format::path::RelPath;
use huai_format::snapshots::{Lookup, ObjectReader, ObjectWriter};
use huai_sys::stop::Stop;

use super::digesting::Digesting;
use super::failure::{CommitProblem, Failure, Result, Substitute};
use super::remarks::Remarks;
use crate::digests::ListedDigests;
use crate::scan::directory::Reason;
use crate::scan::hardlinks::HardlinkGroups;
use crate::scan::linked::find_linked;
use crate::scan::touched::LookResult;
use crate::scan::whole_tree::Scan;
use crate::walk::owners::LookUp;

/// The state of the paths of a list.
pub struct ListedPaths {
    looked: LookResult,
    /// Files that could not be read, or changed while they were read.
    pub unread: Vec<(Vec<u8>, Reason)>,
}

/// The tree of a commit by lists.
#[derive(Debug)]
pub struct Listed {
    /// The tree, and the entries that are counted in or out.
    pub amended: Amended,
    /// The paths whose present state could not be read.
    pub problems: Vec<CommitProblem>,
    /// The remarks.
    pub remarks: Remarks,
    /// The lines for the record of hardlink groups.
    pub pairs: Vec<u8>,
    /// The listed paths that neither exist nor existed.
    pub unknown: Vec<Vec<u8>>,
}

impl ListedPaths {
    /// Look at `touched` paths, and at other names of the files there according to the record
    /// of hardlink groups at the path `record`.
    pub fn look(
        scan: &Scan,
        touched: &[Touched],
        record: &[u8],
        look_up: &LookUp<'_>,
        stop: &Stop,
    ) -> Result<Self> {
        let look = |touched: &[Touched]| scan.look(touched, look_up, stop).map_err(Failure::Tree);
        let mut looked = look(touched)?;
        let linked = find_linked(record, &looked.replaced(), stop).map_err(Failure::Tree)?;
        if !linked.is_empty() {
            let linked = linked.into_iter().map(|path| Touched {
                path,
                all_below: false,
                perhaps: true,
            });
            looked = look(&touched.iter().cloned().chain(linked).collect::<Vec<_>>())?;
        }
        let unread = Vec::new();
        Ok(Self { looked, unread })
    }

    /// Return the examined directories on another device than the root, in tree order.
    pub fn foreign(&self) -> Vec<&[u8]> {
        let directories = &self.looked.directories;
        let root = directories.first().map(|root| root.device);
        let foreign = directories.iter().filter(|each| Some(each.device) != root);
        foreign.map(|each| &*each.path).collect()
    }

    /// Set the digests of files, as `Digesting::fill` does.  A file that could not be read, or changed meanwhile, is
    /// added to `unread`, and its old entry stays.  Fails with `Stopped` after a stop.
    pub fn digest<R: ObjectReader>(
        &mut self,
        digests: &mut ListedDigests,
        digesting: &mut Digesting<'_>,
        past: Option<&mut Lookup<R>>,
        stop: &Stop,
    ) -> Result<()> {
        let mut directories: Vec<_> = self.looked.directories.iter_mut().collect();
        for ((number, file), reason) in digesting.fill(&mut directories, digests, past, stop)? {
            self.looked.others[number]
                .unsure
                .insert(directories[number].name_of(file));
            self.unread
                .push((directories[number].path_of(file), reason));
        }
        Ok(())
    }

    /// Return path, leaves and digests of each directory.
    pub fn directories(&self) -> impl Iterator<Item = (&[u8], &[u8], &[u8])> {
        let directories = self.looked.directories.iter();
        directories.map(|each| (&*each.path, &*each.leaves, &*each.digests))
    }

    /// Amend the tree of the last commit; `None` if a changed file has more names than are known
    /// and `names_links` is false.  `names_links` means that the lists name an old name with each new name of a file.
    pub fn commit<R: ObjectReader>(
        mut self,
        past: &mut Lookup<R>,
        (touched, names_links): (&[Touched], bool),
        mut remarks: Remarks,
        writer: &mut impl ObjectWriter,
    ) -> Result<Option<Listed>> {
        let problems = self.problems(past, &mut remarks)?;
        let mut groups = HardlinkGroups::default();
        let LookResult {
            directories,
            others,
            ..
        } = &mut self.looked;
        for (directory, others) in directories.iter_mut().zip(others) {
            groups.resolve(directory, &others.unsure);
        }
        if !names_links && !groups.is_complete() {
            return Ok(None);
        }
        let amendments = self.looked.amendments();
        let amended = amend(&past.snapshot(), past.limit(), &amendments, writer)?;
        Ok(Some(Listed {
            unknown: self.unknown(&amended, touched),
            amended,
            problems,
            remarks,
            pairs: groups.take_pairs(),
        }))
    }

    /// Return what could not be read, except entries that are left out on purpose, with its substitute from `past`;
    /// adds the remarks.
    fn problems<R: ObjectReader>(
        &self,
        past: &mut Lookup<R>,
        remarks: &mut Remarks,
    ) -> Result<Vec<CommitProblem>> {
        let mut problems = Vec::new();
        let mut put = |path: RelPath, reason, is_own| {
            let outcome = if is_own {
                Substitute::Clamped
            } else if past.has(&path)? {
                Substitute::Kept
            } else {
                Substitute::LeftOut
            };
            let path = path.as_bytes().to_vec();
            problems.push(CommitProblem {
                path,
                reason,
                outcome,
            });
            Result::Ok(())
        };
        for directory in self.looked.directories.iter().filter(|each| !each.is_plain) {
            remarks.add_directory(directory);
            let path = RelPath::trusted(directory.path.clone());
            for problem in directory
                .problems
                .iter()
                .filter(|each| !each.reason.leaves_out())
            {
                let is_own = problem.name.is_empty();
                let path = if is_own {
                    path.clone()
                } else {
                    path.join(&problem.name)
                };
                put(path, problem.reason, is_own)?;
            }
        }
        for (path, reason) in self.looked.unreadable.iter().chain(&self.unread) {
            put(RelPath::trusted(path.clone()), *reason, false)?;
        }
        Ok(problems)
    }

    /// Return the listed paths that neither exist nor existed.  Paths added as further names (`perhaps`) do not count.
    fn unknown(&self, amended: &Amended, touched: &[Touched]) -> Vec<Vec<u8>> {
        let looked_at = self.looked.directories.iter().map(|each| &*each.path);
        let looked_at: HashSet<&[u8]> = looked_at.collect();
        let listed = touched.iter().filter(|each| !each.perhaps);
        let is_unknown = |path: &RelPath| {
            let bytes = path.as_bytes();
            if amended.unknown.contains(bytes) {
                return true;
            }
            // The path would be below an entry that is not a directory, and no directory was there.
            let above = path.ancestors().next();
            above.is_some_and(|above| !looked_at.contains(above))
                && !path.ancestors().any(|above| amended.ended.contains(above))
        };
        let unknown = listed.filter(|each| is_unknown(&each.path));
        unknown.map(|each| each.path.as_bytes().to_vec()).collect()
    }
}
