//! The state that all directories of a scan share, and the open directory of a reader.

use std::os::fd::BorrowedFd;

use huai_plan::pattern::Pattern;
use huai_sys::call::{Outcome, Status};
use huai_sys::handle::Root;
use huai_sys::stop::Stop;

use super::file_systems::FileSystems;
use crate::walk::owners::{LastOwners, LookUp, Owners};

/// The options of a scan.
#[derive(Debug)]
pub struct ScanOptions {
    /// The patterns of entries that are left out.
    pub patterns: Vec<Pattern>,
    /// True to list a mount point as an empty directory.
    pub one_file_system: bool,
    /// True to record owners and groups; otherwise everything belongs to root.
    pub owners: bool,
    /// The number of threads that read directories.
    pub threads: usize,
}

/// The state that all threads of a scan share.
pub(crate) struct Tree<'a> {
    pub(crate) root: &'a Root,
    pub(crate) options: &'a ScanOptions,
    pub(crate) owners: &'a Owners,
    pub(crate) file_systems: &'a FileSystems,
    pub(crate) look_up: &'a LookUp<'a>,
    pub(crate) stop: &'a Stop,
}

impl Tree<'_> {
    /// Return the fields of the owners of an entry, none if they are not recorded.
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

/// An open directory that is being read.
pub(super) struct OpenDirectory<'a> {
    pub(super) tree: &'a Tree<'a>,
    pub(super) path: &'a [u8],
    pub(super) handle: BorrowedFd<'a>,
}

impl OpenDirectory<'_> {
    /// Return true if an exclude pattern matches.
    pub(super) fn leaves_out(&self, name: &[u8], is_directory: bool) -> bool {
        let patterns = &self.tree.options.patterns;
        patterns
            .iter()
            .any(|pattern| pattern.matches_entry(self.path, name, is_directory))
    }
}
