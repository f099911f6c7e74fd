//! Publishing what was staged.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::FileType;

use super::row::{At, Done, Failure, Reason, Row, at, check, row};
use super::tree::Tree;
use crate::sys::attributes::{Attributes, Mode, Of};
use crate::sys::call::{self, Outcome};
use crate::sys::stop::Stop;

/// A file that is to be.
#[derive(Debug)]
pub struct File {
    /// Where.
    pub path: Vec<u8>,
    /// What it is to have.
    pub attributes: Attributes,
}

/// Where a file lies that is complete and verified.
#[derive(Debug)]
pub struct Staged {
    /// An open directory of this process: on the file system of the tree, and nobody else may write
    /// to it or below it.
    pub folder: u32,
    /// From there; no symlink is on the way.
    pub name: Vec<u8>,
}

/// The folder of the last file: nearly always that of the next one as well.
#[derive(Default)]
pub(crate) struct LastFolder(Option<(u32, OwnedFd)>);

impl LastFolder {
    pub(crate) fn open(&mut self, folder: u32) -> Outcome<BorrowedFd<'_>> {
        let known = self.0.take().filter(|(number, _)| *number == folder);
        let found = match known {
            Some(known) => known,
            None => (folder, call::reopen(folder)?),
        };
        Ok(self.0.insert(found).1.as_fd())
    }
}

impl Tree {
    /// Sets owner, mode and times of staged files, to what they are to become.
    pub fn prepare_files(&mut self, items: &[(Staged, File)], stop: &Stop) -> Row {
        let mut last = LastFolder::default();
        row(items, stop, |(staged, file)| {
            check(&file.path)?;
            let wanted = self.with_mode(file)?;
            let folder = last.open(staged.folder).at(&file.path)?;
            set(folder, &staged.name, &wanted, &file.path)
        })
    }

    /// Renames staged files to their paths.
    pub fn publish_files(&mut self, items: &[(Staged, Vec<u8>)], stop: &Stop) -> Row {
        let mut last = LastFolder::default();
        row(items, stop, |(staged, path)| {
            check(path)?;
            let folder = last.open(staged.folder).at(path)?;
            self.put((folder, &staged.name), path)
        })
    }

    /// A kept mode is that of the file that is replaced; if there is none, that of a new file.
    fn with_mode(&mut self, file: &File) -> Result<Attributes, Failure> {
        let mut wanted = file.attributes;
        if let Mode::Kept(_) = wanted.mode {
            let mode = match self.status(&file.path).at(&file.path)? {
                Some(found) if found.kind == FileType::RegularFile => found.mode,
                _ => self.anew(wanted.mode),
            };
            wanted.mode = Mode::Exact(mode);
        }
        Ok(wanted)
    }
}

fn set(folder: BorrowedFd<'_>, name: &[u8], wanted: &Attributes, path: &[u8]) -> Done {
    let status = call::status_at(folder, name).at(path)?;
    if status.kind != FileType::RegularFile {
        return Err(at(path, Reason::NotRegular));
    }
    wanted.set(Of::Own(folder, name), &status).at(path)
}
