//! What is the same for all directories of a scan, and one of them while it is read.

use std::os::fd::BorrowedFd;

use huai_format::pattern::Pattern;

use crate::sys::call::{Outcome, Status};
use crate::sys::file_systems::FileSystems;
use crate::sys::handle::Root;
use crate::sys::stop::Stop;
use crate::walk::owners::{LastOwners, LookUp, Owners};

/// How to scan.
#[derive(Debug)]
pub struct Options {
    /// What is left out.
    pub patterns: Vec<Pattern>,
    /// List a mount point as an empty directory.
    pub one_file_system: bool,
    /// Record owners and groups; otherwise everything belongs to root.
    pub owners: bool,
    /// Directories looked at at the same time.
    pub threads: usize,
}

/// What all threads of a scan share.
pub(crate) struct Tree<'a> {
    pub(crate) root: &'a Root,
    pub(crate) options: &'a Options,
    pub(crate) owners: &'a Owners,
    pub(crate) file_systems: &'a FileSystems,
    pub(crate) look_up: &'a LookUp<'a>,
    pub(crate) stop: &'a Stop,
}

impl Tree<'_> {
    /// The fields of the owners of an entry.
    pub(super) fn owners_of<'a>(
        &self,
        last: &'a mut LastOwners,
        status: &Status,
    ) -> Outcome<&'a [u8]> {
        if !self.options.owners {
            return Ok(b"");
        }
        last.fields((status.user, status.group), self.owners, self.look_up)
    }
}

/// An open directory while it is read.
pub(super) struct Place<'a> {
    pub(super) tree: &'a Tree<'a>,
    pub(super) path: &'a [u8],
    pub(super) handle: BorrowedFd<'a>,
}

impl Place<'_> {
    pub(super) fn leaves_out(&self, name: &[u8], is_directory: bool) -> bool {
        let patterns = &self.tree.options.patterns;
        patterns
            .iter()
            .any(|pattern| pattern.matches_entry(self.path, name, is_directory))
    }
}
