//! A commit of what lists name: what is at the named paths, and the last commit for the rest.

use std::collections::HashSet;

use huai_format::amend::{Amended, amend};
use huai_format::change_list::Touched;
use huai_format::lookup::Lookup;
use huai_format::objects::{ObjectReader, ObjectWriter};
use huai_format::path::RelPath;

use super::digesting::Digesting;
use super::failure::{Failure, Outcome, Problem, Result};
use super::remarks::Remarks;
use crate::digests::ListedDigests;
use crate::scan::directory::Reason;
use crate::scan::hardlinks::HardlinkGroups;
use crate::scan::linked::find_linked;
use crate::scan::touched::Looked;
use crate::scan::whole_tree::Scan;
use crate::sys::stop::Stop;
use crate::walk::owners::LookUp;

/// What is at the paths of a list.
pub struct Found {
    looked: Looked,
    /// Files that changed while they were read, and cannot be read.
    pub unread: Vec<(Vec<u8>, Reason)>,
}

/// The tree of a commit by lists.
#[derive(Debug)]
pub struct Listed {
    /// Its tree, and what is counted in it and no longer.
    pub amended: Amended,
    /// Paths that could not be read as they are.
    pub problems: Vec<Problem>,
    /// What is worth a remark.
    pub remarks: Remarks,
    /// Lines for the record of hardlink groups.
    pub pairs: Vec<u8>,
    /// Named paths at which nothing is, and nothing was.
    pub unknown: Vec<Vec<u8>>,
}

impl Found {
    /// Looks at the paths that are `touched`, and at other names of the files there, as the record
    /// of hardlink groups at the path `record` has them.
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

    /// Directories on another device than the root.
    pub fn foreign(&self) -> Vec<&[u8]> {
        let directories = &self.looked.directories;
        let root = directories.first().map(|root| root.device);
        let others = directories.iter().filter(|each| Some(each.device) != root);
        others.map(|each| &*each.path).collect()
    }

    /// Finds the digests of what is there.  Where they come later, those of `past` stay.
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

    /// Path, leaves and digests of each directory.
    pub fn directories(&self) -> impl Iterator<Item = (&[u8], &[u8], &[u8])> {
        let directories = self.looked.directories.iter();
        directories.map(|each| (&*each.path, &*each.leaves, &*each.digests))
    }

    /// The tree of the last commit with what was found; none if a file that changed has more names
    /// than are known, and not `names_links`: then a new name of a file comes with an old one.
    pub fn commit<R: ObjectReader>(
        mut self,
        past: &mut Lookup<R>,
        (touched, names_links): (&[Touched], bool),
        mut remarks: Remarks,
        writer: &mut impl ObjectWriter,
    ) -> Result<Option<Listed>> {
        let problems = self.problems(past, &mut remarks)?;
        let mut groups = HardlinkGroups::default();
        let Looked {
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

    fn problems<R: ObjectReader>(
        &self,
        past: &mut Lookup<R>,
        remarks: &mut Remarks,
    ) -> Result<Vec<Problem>> {
        let mut problems = Vec::new();
        let mut put = |path: RelPath, reason, is_own| {
            let outcome = if is_own {
                Outcome::Clamped
            } else if past.has(&path)? {
                Outcome::Kept
            } else {
                Outcome::LeftOut
            };
            let path = path.as_bytes().to_vec();
            problems.push(Problem {
                path,
                reason,
                outcome,
            });
            Result::Ok(())
        };
        for directory in self.looked.directories.iter().filter(|each| !each.is_plain) {
            remarks.take(directory);
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

    /// The named paths at which nothing is and was.
    fn unknown(&self, amended: &Amended, touched: &[Touched]) -> Vec<Vec<u8>> {
        let seen = self.looked.directories.iter().map(|each| &*each.path);
        let seen: HashSet<&[u8]> = seen.collect();
        let named = touched.iter().filter(|each| !each.perhaps);
        let is_unknown = |path: &RelPath| {
            let bytes = path.as_bytes();
            if amended.unknown.contains(bytes) {
                return true;
            }
            // What is to be below something else than a directory, where no directory was.
            let above = path.ancestors().next();
            above.is_some_and(|above| !seen.contains(above))
                && !path.ancestors().any(|above| amended.ended.contains(above))
        };
        let unknown = named.filter(|each| is_unknown(&each.path));
        unknown.map(|each| each.path.as_bytes().to_vec()).collect()
    }
}
