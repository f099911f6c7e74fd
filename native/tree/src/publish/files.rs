//! Publishes staged files.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use huai_format::path::split;
use huai_sys::attributes::{Attributes, Mode, Of};
use huai_sys::call::{self, FileType, Outcome};
use huai_sys::error::Errno;
use huai_sys::stop::Stop;

use super::row::{At, Done, FailureReason, OperationFailure, RowResult, at, reject_reserved, row};
use super::tree::{SET_GROUP, Tree};

/// A file to publish.
#[derive(Debug)]
pub struct PublishedFile {
    /// The path.
    pub path: Vec<u8>,
    /// The attributes.
    pub attributes: Attributes,
}

/// The place of a complete and verified file.
#[derive(Debug)]
pub struct Staged {
    /// An open directory of this process: on the file system of the tree, and no other user may
    /// write to it or below it.
    pub folder: u32,
    /// The path from there, without symlinks.
    pub name: Vec<u8>,
}

/// The folder of the last file, which is nearly always that of the next one.
#[derive(Default)]
pub(crate) struct LastFolder(Option<(u32, OwnedFd)>);

impl LastFolder {
    /// Return a handle of the directory that this process has open as `folder`, and keep it.
    pub(crate) fn open(&mut self, folder: u32) -> Outcome<BorrowedFd<'_>> {
        let last = self.0.take().filter(|(number, _)| *number == folder);
        let folder_handle = match last {
            Some(last) => last,
            None => (folder, call::reopen(folder)?),
        };
        Ok(self.0.insert(folder_handle).1.as_fd())
    }
}

impl Tree {
    /// Set owner, mode and times of staged files; a kept mode is that of the file at the path, or of a new file.  One
    /// that is not a regular file fails.
    pub fn prepare_files(&mut self, items: &[(Staged, PublishedFile)], stop: &Stop) -> RowResult {
        let mut last = LastFolder::default();
        row(items, stop, |(staged, file)| {
            reject_reserved(&file.path)?;
            let attributes = self.with_mode(file)?;
            let folder = last.open(staged.folder).at(&file.path)?;
            set(folder, &staged.name, &attributes, &file.path)
        })
    }

    /// Rename staged files to their paths, replacing leaves; after `keep_below`, each replaced leaf is kept.  If owners
    /// are not set, a file gets the group of a set-group-ID directory.
    pub fn publish_files(&mut self, items: &[(Staged, Vec<u8>)], stop: &Stop) -> RowResult {
        let mut last = LastFolder::default();
        row(items, stop, |(staged, path)| {
            reject_reserved(path)?;
            let folder = last.open(staged.folder).at(path)?;
            if !self.options.owners {
                self.inherit_group(folder, &staged.name, path).at(path)?;
            }
            self.publish_entry((folder, &staged.name), path)
        })
    }

    /// Give a staged file with one name the group that a file made at `path` gets, if this user may.
    fn inherit_group(&mut self, folder: BorrowedFd<'_>, name: &[u8], path: &[u8]) -> Outcome<()> {
        let above = self.status(split(path).0)?;
        let Some(above) = above.filter(|above| above.mode & SET_GROUP != 0) else {
            return Ok(());
        };
        let status = call::status_at(folder, name)?;
        if status.links > 1 {
            return Ok(());
        }
        let attributes = Attributes {
            user: None,
            group: Some(above.group),
            mode: Mode::Exact(status.mode),
            mtime: 0,
        };
        let of = Of::Own(folder, name);
        let chowned = attributes.set_owner(of, &status);
        match chowned.and_then(|chowned| attributes.set_mode(of, &status, chowned)) {
            Err(Errno::PERM) => Ok(()),
            outcome => outcome,
        }
    }

    /// Resolve a kept mode to that of the replaced file, or to that of a new file.
    fn with_mode(&mut self, file: &PublishedFile) -> Result<Attributes, OperationFailure> {
        let mut attributes = file.attributes;
        if let Mode::Kept(_) = attributes.mode {
            let mode = match self.status(&file.path).at(&file.path)? {
                Some(found) if found.kind == FileType::RegularFile => found.mode,
                _ => self.new_mode(attributes.mode),
            };
            attributes.mode = Mode::Exact(mode);
        }
        Ok(attributes)
    }
}

/// Set owner, mode and time of a regular file; anything else is refused.
fn set(folder: BorrowedFd<'_>, name: &[u8], wanted: &Attributes, path: &[u8]) -> Done {
    let status = call::status_at(folder, name).at(path)?;
    if status.kind != FileType::RegularFile {
        return Err(at(path, FailureReason::NotRegular));
    }
    wanted.set(Of::Own(folder, name), &status).at(path)
}
