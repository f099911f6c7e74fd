//! Reads one directory of a downstream tree, with the attributes of its entries.
//!
//! An unreadable path is reported as such, and never taken for missing.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};

use huai_format::limits::TARGET_BYTES;
use huai_format::path::{basename, parent};
use huai_git::bug::fit;
use huai_plan::candidates::{EntryKind, LocalStatus};
use huai_sys::call::{self, FileType, Outcome, Status};
use huai_sys::error::{Errno, is_shortage};
use huai_sys::folders::Folders;
use huai_sys::handle::Root;
use huai_sys::listing::{Names, reserve};
use huai_sys::stop::Stop;

use super::scope::Scope;
use crate::walk::ahead::Read;
use crate::walk::line::nearest_nanoseconds;
use crate::walk::queue::{Frame, Reading};

/// The downstream's own folder, which no snapshot names.
const STAGING: &[u8] = b".~tmp~";

/// Convert a status of the kernel; the kind is `None` for a special file.
pub(crate) fn local_status(status: &Status) -> LocalStatus {
    LocalStatus {
        kind: match status.kind {
            FileType::RegularFile => Some(EntryKind::File),
            FileType::Directory => Some(EntryKind::Directory),
            FileType::Symlink => Some(EntryKind::Symlink),
            _ => None,
        },
        mode: fit(status.mode),
        links: status.links,
        user: status.user,
        group: status.group,
        size: status.size,
        mtime: nearest_nanoseconds(status.mtime),
        device: status.device,
        inode: status.inode,
    }
}

/// A local entry that is not a directory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leaf<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) seen: Outcome<LocalStatus>,
    /// The target of a symlink.
    pub(crate) target: &'a [u8],
}

/// The reason why the content of a directory is unknown.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Closed {
    /// An error of the kernel.
    Errno(Errno),
    /// It is on another file system or a bind mount, which are not entered.
    MountPoint,
}

/// A local directory.
#[derive(Debug, Default)]
pub(crate) struct Local {
    pub(crate) path: Vec<u8>,
    /// The directory itself; `None` if it is outside of the scope or unreadable.
    pub(crate) own: Option<LocalStatus>,
    pub(crate) closed: Option<Closed>,
    /// The subdirectories' names in order, each ended by NUL.
    pub(crate) children: Vec<u8>,
    /// The names and targets.
    text: Vec<u8>,
    /// The ends of name and target.
    leaves: Vec<(usize, usize, Outcome<LocalStatus>)>,
}

impl Local {
    /// Return the leaf at this position, `None` after the last; leaves are sorted by name.
    pub(crate) fn leaf(&self, place: usize) -> Option<Leaf<'_>> {
        let (name_end, end, seen) = *self.leaves.get(place)?;
        let before = place
            .checked_sub(1)
            .and_then(|before| self.leaves.get(before));
        let begin = before.map_or(0, |(_, end, _)| *end);
        Some(Leaf {
            name: self.text.get(begin..name_end)?,
            target: self.text.get(name_end..end)?,
            seen,
        })
    }

    /// Mark the content as unknown.
    fn close(&mut self, errno: Errno) {
        self.closed = Some(Closed::Errno(errno));
        self.children.clear();
        self.text.clear();
        self.leaves.clear();
    }

    /// Add a leaf after the others, in order of the names; `NOMEM` without memory.
    fn add(&mut self, name: &[u8], seen: Outcome<LocalStatus>, target: &[u8]) -> Outcome<()> {
        reserve(&mut self.text, name.len() + target.len())?;
        reserve(&mut self.leaves, 1)?;
        self.text.extend_from_slice(name);
        let name_end = self.text.len();
        self.text.extend_from_slice(target);
        self.leaves.push((name_end, self.text.len(), seen));
        Ok(())
    }
}

impl Frame for Local {
    fn size(&self) -> usize {
        let leaves = self.leaves.len() * size_of::<(usize, usize, Outcome<LocalStatus>)>();
        self.path.len() + self.children.len() + self.text.len() + leaves
    }
}

/// An entry at one path.
#[derive(Debug)]
pub(crate) struct LocalEntry {
    pub(crate) seen: LocalStatus,
    /// The target of a symlink.
    pub(crate) target: Vec<u8>,
}

/// Look at `path`; `None` if it is free, or an ancestor is not a directory.
pub(crate) fn look(folders: &mut Folders, path: &[u8]) -> Outcome<Option<LocalEntry>> {
    match try_look(folders, path) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Examine an entry, and read a symlink's target; `NOENT` if it is missing.
fn try_look(folders: &mut Folders, path: &[u8]) -> Outcome<LocalEntry> {
    let above = folders.open(parent(path))?;
    let name = basename(path);
    let status = match name {
        [] => call::status(above.as_fd())?,
        _ => call::status_at(above.as_fd(), name)?,
    };
    let mut target = Vec::new();
    if status.kind == FileType::Symlink {
        let mut room = [std::mem::MaybeUninit::uninit(); TARGET_BYTES + 1];
        target.extend_from_slice(call::read_link(above.as_fd(), name, &mut room)?);
    }
    let seen_status = local_status(&status);
    Ok(LocalEntry {
        seen: seen_status,
        target,
    })
}

/// A reader of directories for one thread.
pub(crate) struct LocalReader<'a> {
    root: &'a Root,
    scope: &'a Scope,
    /// True if a directory with an unreadable entry is closed as a whole.
    closes: bool,
    stop: &'a Stop,
    names: Names,
}

impl<'a> LocalReader<'a> {
    /// Read directories in `scope`; with `closes`, a directory with an unreadable entry is closed
    /// as a whole.
    pub(crate) fn new(root: &'a Root, scope: &'a Scope, closes: bool, stop: &'a Stop) -> Self {
        Self {
            root,
            scope,
            closes,
            stop,
            names: Names::default(),
        }
    }

    /// Return the frame of a path that cannot be opened as a directory; `None` if no directory is there.
    /// A leaf at the top of the scope becomes the only leaf of its parent.
    fn closed(&self, path: &[u8], errno: Errno) -> Outcome<Option<Local>> {
        let mut local = Local {
            path: path.to_vec(),
            closed: Some(Closed::Errno(errno)),
            ..Local::default()
        };
        let mut folders = Folders::new(self.root.reopen()?, None)?;
        match look(&mut folders, path) {
            Ok(Some(found)) if found.seen.is_directory() => {
                local.own = self.scope.holds(path, true).then_some(found.seen);
            }
            Ok(Some(found)) if path == self.scope.top && self.scope.holds(path, false) => {
                let name = basename(path);
                local = Local::default();
                parent(path).clone_into(&mut local.path);
                local.add(name, Ok(found.seen), &found.target)?;
            }
            Ok(_) => return Ok(None),
            Err(errno) if is_shortage(errno) => return Err(errno),
            Err(errno) => local.closed = Some(Closed::Errno(errno)),
        }
        Ok(Some(local))
    }

    /// Read an open directory; on another mount, only its own status.  One that cannot be listed is closed; only a
    /// shortage or a stop is an error.
    fn open(&mut self, path: &[u8], handle: BorrowedFd<'_>) -> Outcome<Reading<Local>> {
        let status = call::status(handle)?;
        let own = self.scope.holds(path, true).then(|| local_status(&status));
        let mut local = Local {
            path: path.to_vec(),
            own,
            ..Local::default()
        };
        if !self.root.is_within(&status) {
            local.closed = Some(Closed::MountPoint);
        } else if let Err(errno) = self.names.read(handle, |_, _| true) {
            if is_shortage(errno) {
                return Err(errno);
            }
            local.closed = Some(Closed::Errno(errno));
        } else {
            let names = std::mem::take(&mut self.names);
            let added = self.add_all(&mut local, handle, &names);
            self.names = names;
            self.names.relax();
            match added {
                Err(Errno::ACCESS) => local.close(Errno::ACCESS),
                added => added?,
            }
        }
        let children = local.children.clone();
        let frame = Some(local);
        Ok(Reading { frame, children })
    }

    /// Examine and add all entries of an open directory.
    fn add_all(&self, local: &mut Local, handle: BorrowedFd<'_>, names: &Names) -> Outcome<()> {
        let mut below = local.path.clone();
        if !below.is_empty() {
            below.push(b'/');
        }
        let mut entries = names.iter();
        entries.try_for_each(|entry| self.add(local, &mut below, handle, entry))
    }

    /// Add an entry; `below` is the path of the directory with its slash.  `CANCELED` after a stop.
    fn add(
        &self,
        local: &mut Local,
        below: &mut Vec<u8>,
        handle: BorrowedFd<'_>,
        (name, kind): (&CStr, FileType),
    ) -> Outcome<()> {
        if self.stop.is_set() {
            return Err(Errno::CANCELED);
        }
        let above = below.len();
        below.extend_from_slice(name.to_bytes());
        let added = self.add_at(local, below, handle, (name, kind));
        below.truncate(above);
        added
    }

    /// Examine the entry at `path`; add it as a leaf, or as a child to read, if it is in the scope.  Skips the
    /// staging folder and what is gone; fails with `ACCESS` if `closes`.
    fn add_at(
        &self,
        local: &mut Local,
        path: &[u8],
        handle: BorrowedFd<'_>,
        (name, kind): (&CStr, FileType),
    ) -> Outcome<()> {
        let bytes = name.to_bytes();
        let mut is_directory = kind == FileType::Directory;
        let mut outcome: Outcome<LocalStatus> = Err(Errno::NOENT);
        if !is_directory {
            if kind != FileType::Unknown && !self.scope.holds(path, false) {
                return Ok(());
            }
            outcome = call::status_at(handle, name).map(|status| local_status(&status));
            if self.closes && outcome.is_err_and(|errno| errno == Errno::ACCESS) {
                return Err(Errno::ACCESS);
            }
            is_directory = outcome.is_ok_and(|seen| seen.is_directory());
        }
        if is_directory {
            if bytes != STAGING && self.scope.enters(path) {
                reserve(&mut local.children, bytes.len() + 1)?;
                local.children.extend_from_slice(name.to_bytes_with_nul());
            }
            return Ok(());
        }
        let mut room = [std::mem::MaybeUninit::uninit(); TARGET_BYTES + 1];
        let mut target: &[u8] = b"";
        if outcome.is_ok_and(|seen| seen.kind == Some(EntryKind::Symlink)) {
            match call::read_link(handle, name, &mut room) {
                Ok(found) => target = found,
                Err(errno) => outcome = Err(errno),
            }
        }
        if outcome.is_err_and(|errno| errno == Errno::NOENT) || !self.scope.holds(path, false) {
            return Ok(());
        }
        local.add(bytes, outcome, target)
    }
}

impl Read for LocalReader<'_> {
    type Frame = Local;

    /// Read a directory: nothing if it is missing, one of unknown content after most errors; a shortage or a stop
    /// ends the walk.
    fn read(&mut self, path: &[u8]) -> Outcome<Reading<Local>> {
        let opened = self.root.directory(path);
        let read = opened.and_then(|handle| self.open(path, handle.as_fd()));
        match read {
            Err(Errno::NOENT) => Ok(Reading::default()),
            Err(errno) if is_shortage(errno) || errno == Errno::CANCELED => Err(errno),
            Err(errno) => Ok(Reading {
                frame: self.closed(path, errno)?,
                children: Vec::new(),
            }),
            read => read,
        }
    }
}
