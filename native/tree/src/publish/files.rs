//! Publishing what was staged.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::FileType;

use super::row::{At, Done, Failure, Reason, Row, at, check, row};
use super::tree::Tree;
use crate::attributes::{Attributes, Mode, Of};
use crate::call;
use crate::stop::Stop;

/// A file that is to be.
#[derive(Debug)]
pub struct File {
    /// Where.
    pub path: Vec<u8>,
    /// What it is to have.
    pub attributes: Attributes,
}

/// A file that is complete and verified, and what it is to become.
#[derive(Debug)]
pub struct Staged {
    /// The open directory of this process that it lies in: on the file system of the tree, and
    /// nobody else may write to it.
    pub folder: u32,
    /// Its name there.
    pub name: Vec<u8>,
    /// What it is to become.
    pub file: File,
}

/// The folder of the last file: nearly always that of the next one as well.
#[derive(Default)]
struct LastFolder(Option<(u32, OwnedFd)>);

impl LastFolder {
    fn open(&mut self, staged: &Staged) -> Result<BorrowedFd<'_>, Failure> {
        let known = self.0.take().filter(|(number, _)| *number == staged.folder);
        let found = match known {
            Some(known) => known,
            None => (
                staged.folder,
                call::reopen(staged.folder).at(&staged.file.path)?,
            ),
        };
        Ok(self.0.insert(found).1.as_fd())
    }
}

impl Tree {
    /// Sets owner, mode and times of staged files.
    pub fn prepare_files(&mut self, items: &[Staged], stop: &Stop) -> Row {
        let mut last = LastFolder::default();
        row(items, stop, |item| {
            check(&item.file.path)?;
            let wanted = self.with_mode(&item.file)?;
            set(last.open(item)?, &item.name, &wanted, &item.file.path)
        })
    }

    /// Renames staged files to their paths.
    pub fn publish_files(&mut self, items: &[Staged], stop: &Stop) -> Row {
        let mut last = LastFolder::default();
        row(items, stop, |item| {
            check(&item.file.path)?;
            let place = (last.open(item)?, item.name.as_slice());
            self.put(place, &item.file.path)
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
