//! Reading one directory, again if it changes meanwhile.

use std::collections::BTreeSet;
use std::os::fd::AsFd;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::crowd::{Found, PART};
use super::entries::Entries;
use super::frame::{Directory, Frame, Reason};
use super::place::{Place, Tree};
use crate::sys::call::{self, Outcome, Status, terminated};
use crate::sys::error::is_shortage;
use crate::sys::listing::Names;
use crate::walk::owners::LastOwners;
use crate::walk::queue::Reading;

/// How often a directory that changes meanwhile is read before it is given up.
const READINGS: usize = 4;
/// What others need to read a directory.
const OTHERS_ENTER: u32 = 0o005;

/// Why a directory has no listing.
pub(super) enum Failure {
    /// That is what the scan says of it.
    Given(Reason),
    /// The scan cannot go on.
    Fatal(Errno),
}

/// Turn an error of the kernel into one of this directory; shortages and owners are not.
fn said(errno: Errno) -> Failure {
    if is_shortage(errno) {
        Failure::Fatal(errno)
    } else {
        Failure::Given(Reason::Errno(errno))
    }
}

/// What one thread needs for its work, kept from directory to directory.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    names: Names,
    entries: Entries,
    owners: LastOwners,
}

impl Reader {
    /// Reads the directory at `path`; an error is one of the whole scan.
    pub(crate) fn read(&mut self, tree: &Tree<'_>, path: &[u8]) -> Outcome<Reading<Found>> {
        let read = self.try_read(tree, path);
        self.end(path, &read)
    }

    /// What is said of the directory at `path`.
    fn end(
        &mut self,
        path: &[u8],
        read: &Result<(Status, u64), Failure>,
    ) -> Outcome<Reading<Found>> {
        match read {
            Ok((status, file_system)) => self.finish(path, status, *file_system),
            Err(Failure::Fatal(errno)) => Err(*errno),
            Err(Failure::Given(Reason::Errno(Errno::NOENT))) => Ok(Reading::default()),
            Err(Failure::Given(reason)) => Ok(Reading {
                frame: Some(Found::Frame(Frame::Unreadable {
                    path: path.to_vec(),
                    reason: *reason,
                })),
                children: Vec::new(),
            }),
        }
    }

    /// Looks at the entries with these `names` in the directory at `path`, and at itself.
    pub(crate) fn look(
        &mut self,
        tree: &Tree<'_>,
        path: &[u8],
        names: &BTreeSet<Vec<u8>>,
    ) -> Outcome<Reading<Found>> {
        let looked = self.try_look(tree, path, names);
        self.end(path, &looked)
    }

    fn try_look(
        &mut self,
        tree: &Tree<'_>,
        path: &[u8],
        names: &BTreeSet<Vec<u8>>,
    ) -> Result<(Status, u64), Failure> {
        let handle = tree.root.directory(path).map_err(said)?;
        let place = Place {
            tree,
            path,
            handle: handle.as_fd(),
        };
        let status = call::status(place.handle).map_err(said)?;
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
            if entries.wants(&place, name, FileType::Unknown) {
                let name = terminated(name).map_err(Failure::Fatal)?;
                let added = entries.add(&place, owners, &name, FileType::Unknown);
                added.map_err(Failure::Fatal)?;
            }
        }
        let file_system = tree.file_systems.number(place.handle, &status);
        Ok((status, file_system))
    }

    /// Status of the directory, and the number of its file system.
    fn try_read(&mut self, tree: &Tree<'_>, path: &[u8]) -> Result<(Status, u64), Failure> {
        let handle = tree.root.directory(path).map_err(said)?;
        let place = Place {
            tree,
            path,
            handle: handle.as_fd(),
        };
        let mut status = call::status(place.handle).map_err(said)?;
        for _ in 0..READINGS {
            let before = status;
            self.entries.begin();
            self.entries
                .add_itself(tree, &mut self.owners, &before)
                .map_err(Failure::Fatal)?;
            if tree.options.one_file_system && before.device != tree.root.device {
                return Ok((before, 0));
            }
            self.read_once(&place)?;
            status = call::status(place.handle).map_err(said)?;
            if before.mtime == status.mtime {
                let file_system = tree.file_systems.number(place.handle, &status);
                return Ok((status, file_system));
            }
        }
        Err(Failure::Given(Reason::KeepsChanging))
    }

    fn read_once(&mut self, place: &Place<'_>) -> Result<(), Failure> {
        let Self {
            names,
            entries,
            owners,
        } = self;
        call::rewind(place.handle).map_err(said)?;
        names
            .read(place.handle, |name, kind| entries.wants(place, name, kind))
            .map_err(said)?;
        if names.len() > PART {
            entries.expect_many();
        }
        for (name, kind) in names.iter() {
            if place.tree.stop.is_set() {
                return Err(Failure::Fatal(Errno::CANCELED));
            }
            entries
                .add(place, owners, name, kind)
                .map_err(Failure::Fatal)?;
        }
        Ok(())
    }

    fn finish(
        &mut self,
        path: &[u8],
        status: &Status,
        file_system: u64,
    ) -> Outcome<Reading<Found>> {
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
