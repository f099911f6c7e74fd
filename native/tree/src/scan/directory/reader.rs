//! Reads one directory, again if it changes meanwhile.

use std::collections::BTreeSet;
use std::os::fd::AsFd;

use huai_sys::call::{self, FileType, Outcome, Status, terminated};
use huai_sys::error::{Errno, is_shortage};
use huai_sys::listing::Names;

use super::entries::Entries;
use super::frame::{Directory, Frame, Reason, View};
use super::large::{PART, ReadDirectory};
use super::place::{OpenDirectory, Tree};
use crate::walk::owners::LastOwners;
use crate::walk::queue::Reading;

/// The most readings of a directory that keeps changing.
const READINGS: usize = 4;
/// The permissions that others need to read a directory.
const OTHERS_ENTER: u32 = 0o005;

/// The reason why a directory has no listing.
pub(super) enum Failure {
    /// A problem of the directory, which the scan reports.
    Given(Reason),
    /// An error that ends the scan.
    Fatal(Errno),
}

/// Return a shortage as fatal, and any other error as a problem of the directory.
fn as_failure(errno: Errno) -> Failure {
    if is_shortage(errno) {
        Failure::Fatal(errno)
    } else {
        Failure::Given(Reason::Errno(errno))
    }
}

/// The state of one thread, kept from directory to directory.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    names: Names,
    entries: Entries,
    owners: LastOwners,
}

impl Reader {
    /// Read the directory at `path`; an error ends the scan.
    pub(crate) fn read(&mut self, tree: &Tree<'_>, path: &[u8]) -> Outcome<Reading<ReadDirectory>> {
        let read = self.try_read(tree, path);
        self.end(path, &read)
    }

    /// Return the frame of a shard's top directory, with file system and inode, without reading the directory.
    /// Unreadable if it cannot be opened, none if it is missing.
    pub(crate) fn look(&mut self, tree: &Tree<'_>, path: &[u8]) -> Outcome<Reading<ReadDirectory>> {
        let looked = tree.root.directory(path).and_then(|handle| {
            let status = call::status(handle.as_fd())?;
            let is_foreign = tree.options.one_file_system && status.device != tree.root.device;
            let number = || tree.file_systems.number(handle.as_fd(), &status);
            Ok(View {
                file_system: if is_foreign { 0 } else { number() },
                inode: status.inode,
            })
        });
        match looked {
            Ok(view) => Ok(Reading {
                frame: Some(ReadDirectory::Frame(Frame::Shard {
                    path: path.to_vec(),
                    view,
                })),
                children: Vec::new(),
            }),
            Err(errno) => self.end(path, &Err(as_failure(errno))),
        }
    }

    /// Turn the outcome of reading the directory at `path` into a frame; none if it is missing, and an unreadable one
    /// after an error, unless that ends the scan.
    fn end(
        &mut self,
        path: &[u8],
        read: &Result<(Status, u64), Failure>,
    ) -> Outcome<Reading<ReadDirectory>> {
        match read {
            Ok((status, file_system)) => self.finish(path, status, *file_system),
            Err(Failure::Fatal(errno)) => Err(*errno),
            Err(Failure::Given(Reason::Errno(Errno::NOENT))) => Ok(Reading::default()),
            Err(Failure::Given(reason)) => Ok(Reading {
                frame: Some(ReadDirectory::Frame(Frame::Unreadable {
                    path: path.to_vec(),
                    reason: *reason,
                })),
                children: Vec::new(),
            }),
        }
    }

    /// Examine the entries `names` of the directory at `path`, and the directory itself.
    pub(crate) fn examine(
        &mut self,
        tree: &Tree<'_>,
        path: &[u8],
        names: &BTreeSet<Vec<u8>>,
    ) -> Outcome<Reading<ReadDirectory>> {
        let examined = self.try_examine(tree, path, names);
        self.end(path, &examined)
    }

    /// Examine entries, none of a mount point that is not entered; returns the status of the directory, and the
    /// number of its file system.
    fn try_examine(
        &mut self,
        tree: &Tree<'_>,
        path: &[u8],
        names: &BTreeSet<Vec<u8>>,
    ) -> Result<(Status, u64), Failure> {
        let handle = tree.root.directory(path).map_err(as_failure)?;
        let opened = OpenDirectory {
            tree,
            path,
            handle: handle.as_fd(),
        };
        let status = call::status(opened.handle).map_err(as_failure)?;
        let Self {
            entries, owners, ..
        } = self;
        entries.begin();
        entries
            .add_itself(tree, owners, &status)
            .map_err(Failure::Fatal)?;
        if tree.options.one_file_system && status.device != tree.root.device {
            return Ok((status, 0));
        }
        for name in names {
            if entries.wants(&opened, name, FileType::Unknown) {
                let name = terminated(name).map_err(Failure::Fatal)?;
                let added = entries.add(&opened, owners, &name, FileType::Unknown);
                added.map_err(Failure::Fatal)?;
            }
        }
        let file_system = tree.file_systems.number(opened.handle, &status);
        Ok((status, file_system))
    }

    /// Read all entries, again after a change, at most `READINGS` times, then it fails; of a mount point that is not
    /// entered, none.  It returns the status, and the file system's number.
    fn try_read(&mut self, tree: &Tree<'_>, path: &[u8]) -> Result<(Status, u64), Failure> {
        let handle = tree.root.directory(path).map_err(as_failure)?;
        let opened = OpenDirectory {
            tree,
            path,
            handle: handle.as_fd(),
        };
        let mut status = call::status(opened.handle).map_err(as_failure)?;
        for _ in 0..READINGS {
            let before = status;
            self.entries.begin();
            self.entries
                .add_itself(tree, &mut self.owners, &before)
                .map_err(Failure::Fatal)?;
            if tree.options.one_file_system && before.device != tree.root.device {
                return Ok((before, 0));
            }
            self.read_once(&opened)?;
            status = call::status(opened.handle).map_err(as_failure)?;
            if before.mtime == status.mtime {
                let file_system = tree.file_systems.number(opened.handle, &status);
                return Ok((status, file_system));
            }
        }
        Err(Failure::Given(Reason::KeepsChanging))
    }

    /// Read all entries once; `CANCELED` after a stop.
    fn read_once(&mut self, opened: &OpenDirectory<'_>) -> Result<(), Failure> {
        let Self {
            names,
            entries,
            owners,
        } = self;
        call::rewind(opened.handle).map_err(as_failure)?;
        names
            .read(opened.handle, |name, kind| {
                entries.wants(opened, name, kind)
            })
            .map_err(as_failure)?;
        if names.count() > PART {
            entries.expect_many();
        }
        for (name, kind) in names.iter() {
            if opened.tree.stop.is_set() {
                return Err(Failure::Fatal(Errno::CANCELED));
            }
            entries
                .add(opened, owners, name, kind)
                .map_err(Failure::Fatal)?;
        }
        Ok(())
    }

    /// Return the frame of a directory that was read, and its subdirectories.
    fn finish(
        &mut self,
        path: &[u8],
        status: &Status,
        file_system: u64,
    ) -> Outcome<Reading<ReadDirectory>> {
        let directory = Directory {
            path: path.to_vec(),
            device: status.device,
            file_system,
            inode: status.inode,
            ..Directory::default()
        };
        let is_open = status.mode & OTHERS_ENTER == OTHERS_ENTER;
        let reading = Reading {
            frame: Some(self.entries.end(directory, is_open)?),
            children: self.entries.take_children()?,
        };
        self.names.relax();
        Ok(reading)
    }
}
