//! One directory: its names read and sorted, every leaf looked at, the result in one frame.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use huai_format::entry::{DIRECTORY_MODE, FILE_MODE, SYMLINK_MODE};
use huai_format::escape::put_escaped;
use huai_format::limits::{NAME_BYTES, PATH_BYTES, TARGET_BYTES};
use huai_format::path::is_reserved;
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::call::{self, Status};
use crate::exclude;
use crate::handle::Root;
use crate::line;
use crate::listing::{Names, reserve};
use crate::owners::{Kind, LookUp, Owners};
use crate::queue::{self, Reading};
use crate::scan::Options;
use crate::stop::Stop;

/// How often a directory that changes meanwhile is read before it is given up.
const READINGS: usize = 4;
/// What others need to read a directory.
const OTHERS_ENTER: u32 = 0o005;
/// From this size on memory is handed over, not copied.
const LARGE: usize = 64 << 10;

/// What a scan says of one directory.
#[derive(Debug)]
pub enum Frame {
    /// It was read.
    Read(Directory),
    /// It stands in the place of the directory, and of all below it, that could not be read.
    Unreadable {
        /// From the root.
        path: Vec<u8>,
        /// Why.
        reason: Reason,
    },
}

/// One directory as it was seen.
#[derive(Debug)]
pub struct Directory {
    /// From the root.
    pub path: Vec<u8>,
    /// Its own attributes, as in FORMAT.md.
    pub attributes: Vec<u8>,
    /// A line for each file and symlink.
    pub leaves: Vec<u8>,
    /// One record for each file: `huai_server.scan.types.IDENTITY`.
    pub identities: Vec<u8>,
    /// What could not be looked at, or is left out and has to be told.
    pub problems: Vec<Problem>,
    /// Some file here has more than one name.
    pub hardlinks: bool,
    /// Entries that no snapshot holds.
    pub skipped: u64,
    /// Files that others may not read.
    pub unreadable: u64,
    /// No problems, and others may read all of it.
    pub is_plain: bool,
    /// Its file system.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
}

/// An entry that is there and does not stand in the leaves.
#[derive(Debug)]
pub struct Problem {
    /// Empty: the directory itself.
    pub name: Vec<u8>,
    /// Why.
    pub reason: Reason,
}

/// Why an entry does not stand in a listing as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The kernel said so.
    Errno(Errno),
    /// The directory changed at each reading.
    KeepsChanging,
    /// A size or time that no line can hold.
    OutOfRange,
    /// More lines than one listing can hold.
    TooLarge,
    /// The directory's own time: it is listed with the nearest one that fits.
    Time,
    /// A name that is rsync's and huai's own.
    Reserved,
    /// A file that rsync has not finished.
    Temporary,
}

impl queue::Frame for Frame {
    fn size(&self) -> usize {
        match self {
            Self::Read(directory) => directory.size(),
            Self::Unreadable { path, .. } => path.len(),
        }
    }
}

impl Directory {
    fn size(&self) -> usize {
        let problem = |problem: &Problem| problem.name.len() + size_of::<Problem>();
        self.path.len()
            + self.attributes.len()
            + self.leaves.len()
            + self.identities.len()
            + self.problems.iter().map(problem).sum::<usize>()
    }
}

/// Why a directory has no listing.
enum Failure {
    /// That is what the scan says of it.
    Given(Reason),
    /// The scan cannot go on.
    Fatal(Errno),
}

impl From<Reason> for Failure {
    fn from(reason: Reason) -> Self {
        Self::Given(reason)
    }
}

/// What the kernel says of this directory; memory and owners are not the kernel's.
fn said(errno: Errno) -> Failure {
    match errno {
        Errno::NOMEM => Failure::Fatal(errno),
        _ => Failure::Given(Reason::Errno(errno)),
    }
}

/// What all threads of a scan share.
pub(crate) struct Tree<'a> {
    pub(crate) root: &'a Root,
    pub(crate) options: &'a Options,
    pub(crate) owners: &'a Owners,
    pub(crate) look_up: &'a LookUp<'a>,
    pub(crate) stop: &'a Stop,
}

/// What one thread needs for its work, kept from directory to directory.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    names: Names,
    found: Found,
    owners: Fields,
}

/// What was found in a directory so far.
#[derive(Debug, Default)]
struct Found {
    attributes: Vec<u8>,
    leaves: Vec<u8>,
    identities: Vec<u8>,
    problems: Vec<Problem>,
    children: Vec<u8>,
    hardlinks: bool,
    skipped: u64,
    unreadable: u64,
}

/// The fields of the last owner and group: most entries have those of the one before.
#[derive(Debug, Default)]
struct Fields {
    user: Option<(u32, Arc<[u8]>)>,
    group: Option<(u32, Arc<[u8]>)>,
}

/// An open directory while it is read.
struct Place<'a> {
    tree: &'a Tree<'a>,
    path: &'a [u8],
    handle: BorrowedFd<'a>,
}

impl Reader {
    /// Reads the directory at `path`; an error is one of the whole scan.
    pub(crate) fn read(&mut self, tree: &Tree<'_>, path: &[u8]) -> Result<Reading<Frame>, Errno> {
        match self.try_read(tree, path) {
            Ok(status) => self.finish(path, &status),
            Err(Failure::Fatal(errno)) => Err(errno),
            Err(Failure::Given(Reason::Errno(Errno::NOENT))) => Ok(Reading::default()),
            Err(Failure::Given(reason)) => Ok(Reading {
                frame: Some(Frame::Unreadable {
                    path: path.to_vec(),
                    reason,
                }),
                children: Vec::new(),
            }),
        }
    }

    fn try_read(&mut self, tree: &Tree<'_>, path: &[u8]) -> Result<Status, Failure> {
        let handle = tree.root.directory(path).map_err(said)?;
        let place = Place {
            tree,
            path,
            handle: handle.as_fd(),
        };
        let mut status = call::status(place.handle).map_err(said)?;
        for _ in 0..READINGS {
            let before = status;
            self.found.begin(tree, &mut self.owners, &before)?;
            if tree.options.one_file_system && before.device != tree.root.device {
                return Ok(before);
            }
            self.read_once(&place)?;
            status = call::status(place.handle).map_err(said)?;
            if before.mtime == status.mtime {
                return Ok(status);
            }
        }
        Err(Reason::KeepsChanging.into())
    }

    fn read_once(&mut self, place: &Place<'_>) -> Result<(), Failure> {
        let Self {
            names,
            found,
            owners,
        } = self;
        call::rewind(place.handle).map_err(said)?;
        names
            .read(place.handle, |name, kind| found.wants(place, name, kind))
            .map_err(said)?;
        for (name, kind) in names.iter() {
            if place.tree.stop.is_set() {
                return Err(Failure::Fatal(Errno::CANCELED));
            }
            found.add(place, owners, name, kind)?;
        }
        Ok(())
    }

    fn finish(&mut self, path: &[u8], status: &Status) -> Result<Reading<Frame>, Errno> {
        let found = &mut self.found;
        let is_plain = found.problems.is_empty()
            && found.unreadable == 0
            && status.mode & OTHERS_ENTER == OTHERS_ENTER;
        let reading = Reading {
            frame: Some(Frame::Read(Directory {
                path: path.to_vec(),
                attributes: found.attributes.clone(),
                leaves: hand_over(&mut found.leaves)?,
                identities: hand_over(&mut found.identities)?,
                problems: std::mem::take(&mut found.problems),
                hardlinks: found.hardlinks,
                skipped: found.skipped,
                unreadable: found.unreadable,
                is_plain,
                device: status.device,
                inode: status.inode,
            })),
            children: hand_over(&mut found.children)?,
        };
        self.names.relax();
        Ok(reading)
    }
}

/// What a buffer holds; a small one keeps its memory for the next directory.
fn hand_over(buffer: &mut Vec<u8>) -> Result<Vec<u8>, Errno> {
    if buffer.len() >= LARGE {
        let mut given = std::mem::take(buffer);
        given.shrink_to_fit();
        return Ok(given);
    }
    let mut given = Vec::new();
    given
        .try_reserve_exact(buffer.len())
        .map_err(|_| Errno::NOMEM)?;
    given.extend_from_slice(buffer);
    Ok(given)
}

impl Found {
    /// Begins with the attributes of the directory itself.
    fn begin(
        &mut self,
        tree: &Tree<'_>,
        owners: &mut Fields,
        status: &Status,
    ) -> Result<(), Failure> {
        for buffer in [
            &mut self.attributes,
            &mut self.leaves,
            &mut self.identities,
            &mut self.children,
        ] {
            buffer.clear();
        }
        self.problems.clear();
        (self.hardlinks, self.skipped, self.unreadable) = (false, 0, 0);
        line::put_time(&mut self.attributes, line::nearest(status.mtime));
        line::put_mode(&mut self.attributes, status.mode, DIRECTORY_MODE);
        owners.put(tree, &mut self.attributes, status)?;
        if line::nanoseconds(status.mtime).is_none() {
            self.add_problem(b"", Reason::Time)?;
        }
        Ok(())
    }

    /// Whether to look at an entry; what is too long is counted.
    fn wants(&mut self, place: &Place<'_>, name: &[u8], kind: FileType) -> bool {
        if kind != FileType::Unknown && place.leaves_out(name, kind == FileType::Directory) {
            return false;
        }
        let above = if place.path.is_empty() {
            0
        } else {
            place.path.len() + 1
        };
        let fits = name.len() <= NAME_BYTES && above + name.len() <= PATH_BYTES;
        self.skipped += u64::from(!fits);
        fits
    }

    /// Nothing is asked of an entry whose type and name in the directory already decide: where
    /// nobody may pass through the directory, there would be no answer.
    fn add(
        &mut self,
        place: &Place<'_>,
        owners: &mut Fields,
        name: &CStr,
        kind: FileType,
    ) -> Result<(), Failure> {
        let bytes = name.to_bytes();
        if kind != FileType::Unknown && is_reserved(bytes) {
            return self.add_problem(bytes, Reason::Reserved);
        }
        if kind == FileType::Directory {
            return self.add_child(name);
        }
        match call::status_at(place.handle, name) {
            Ok(status) => self.add_known(place, owners, name, kind, &status),
            Err(Errno::NOENT) => Ok(()),
            Err(errno) => self.add_problem(bytes, Reason::Errno(errno)),
        }
    }

    /// `told`: the type that the directory said, which may have changed since.
    fn add_known(
        &mut self,
        place: &Place<'_>,
        owners: &mut Fields,
        name: &CStr,
        told: FileType,
        status: &Status,
    ) -> Result<(), Failure> {
        let bytes = name.to_bytes();
        let is_directory = status.kind == FileType::Directory;
        let undecided = told == FileType::Unknown || is_directory;
        if undecided && place.leaves_out(bytes, is_directory) {
            return Ok(());
        }
        if is_reserved(bytes) {
            return self.add_problem(bytes, Reason::Reserved);
        }
        let fits = line::nanoseconds(status.mtime).is_some() && i64::try_from(status.size).is_ok();
        match status.kind {
            FileType::Directory => self.add_child(name),
            FileType::RegularFile if exclude::is_unfinished(bytes, status.mode) => {
                self.add_problem(bytes, Reason::Temporary)
            }
            FileType::RegularFile | FileType::Symlink if !fits => {
                self.add_problem(bytes, Reason::OutOfRange)
            }
            FileType::RegularFile => self.add_file(place.tree, owners, bytes, status),
            FileType::Symlink => self.add_symlink(place, owners, name, status),
            _ => {
                self.skipped += 1;
                Ok(())
            }
        }
    }

    fn add_file(
        &mut self,
        tree: &Tree<'_>,
        owners: &mut Fields,
        name: &[u8],
        status: &Status,
    ) -> Result<(), Failure> {
        let offset = u32::try_from(self.leaves.len()).map_err(|_| Reason::TooLarge)?;
        reserve(&mut self.leaves, line::FIXED + 4 * name.len()).map_err(Failure::Fatal)?;
        put_escaped(&mut self.leaves, name);
        self.leaves.push(b'\t');
        line::put_decimal(&mut self.leaves, status.size);
        self.end_line(tree, owners, status, FILE_MODE)?;
        self.hardlinks |= status.links > 1;
        self.unreadable += u64::from(status.mode & 0o004 == 0);
        put_identity(&mut self.identities, status, offset).map_err(Failure::Fatal)
    }

    fn add_symlink(
        &mut self,
        place: &Place<'_>,
        owners: &mut Fields,
        name: &CStr,
        status: &Status,
    ) -> Result<(), Failure> {
        let mut room = [std::mem::MaybeUninit::uninit(); TARGET_BYTES + 1];
        let target = match call::read_link(place.handle, name, &mut room) {
            Ok(target) => target,
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return self.add_problem(name.to_bytes(), Reason::Errno(errno)),
        };
        if target.is_empty() || target.len() > TARGET_BYTES {
            self.skipped += 1;
            return Ok(());
        }
        let bytes = name.to_bytes();
        reserve(
            &mut self.leaves,
            line::FIXED + 4 * (bytes.len() + target.len()),
        )
        .map_err(Failure::Fatal)?;
        put_escaped(&mut self.leaves, bytes);
        self.leaves.extend_from_slice(b"\t>");
        put_escaped(&mut self.leaves, target);
        self.end_line(place.tree, owners, status, SYMLINK_MODE)
    }

    fn end_line(
        &mut self,
        tree: &Tree<'_>,
        owners: &mut Fields,
        status: &Status,
        usual_mode: u16,
    ) -> Result<(), Failure> {
        self.leaves.push(b'\t');
        line::put_time(&mut self.leaves, status.mtime);
        line::put_mode(&mut self.leaves, status.mode, usual_mode);
        owners.put(tree, &mut self.leaves, status)?;
        self.leaves.push(b'\n');
        Ok(())
    }

    fn add_child(&mut self, name: &CStr) -> Result<(), Failure> {
        let bytes = name.to_bytes_with_nul();
        reserve(&mut self.children, bytes.len()).map_err(Failure::Fatal)?;
        self.children.extend_from_slice(bytes);
        Ok(())
    }

    fn add_problem(&mut self, name: &[u8], reason: Reason) -> Result<(), Failure> {
        reserve(&mut self.problems, 1).map_err(Failure::Fatal)?;
        self.problems.push(Problem {
            name: name.to_vec(),
            reason,
        });
        Ok(())
    }
}

impl Place<'_> {
    fn leaves_out(&self, name: &[u8], is_directory: bool) -> bool {
        let patterns = &self.tree.options.patterns;
        patterns
            .iter()
            .any(|pattern| pattern.leaves_out(self.path, name, is_directory))
    }
}

impl Fields {
    /// Owner and group, where they are not root.
    fn put(&mut self, tree: &Tree<'_>, line: &mut Vec<u8>, status: &Status) -> Result<(), Failure> {
        if !tree.options.owners {
            return Ok(());
        }
        let Self { user, group } = self;
        for (kind, id, last) in [
            (Kind::User, status.user, user),
            (Kind::Group, status.group, group),
        ] {
            let field = match last {
                Some((known, field)) if *known == id => field,
                _ => {
                    let field = tree.owners.field(kind, id, tree.look_up);
                    &mut last.insert((id, field.map_err(Failure::Fatal)?)).1
                }
            };
            reserve(line, field.len() + 1).map_err(Failure::Fatal)?;
            line.extend_from_slice(field);
        }
        Ok(())
    }
}

/// One record of `huai_server.scan.types.IDENTITY`.
fn put_identity(records: &mut Vec<u8>, status: &Status, offset: u32) -> Result<(), Errno> {
    const BYTES: usize = 64;
    reserve(records, BYTES)?;
    records.extend_from_slice(identity(status).as_flattened());
    for narrow in [
        status.links,
        offset,
        status.mode,
        status.user,
        status.group,
        0,
    ] {
        records.extend_from_slice(&narrow.to_le_bytes());
    }
    Ok(())
}

/// Device, inode, size, mtime and ctime: what tells one state of one file from every other.
pub(crate) fn identity(status: &Status) -> [[u8; 8]; 5] {
    [
        status.device.to_le_bytes(),
        status.inode.to_le_bytes(),
        status.size.to_le_bytes(),
        line::nearest_nanoseconds(status.mtime).to_le_bytes(),
        line::nearest_nanoseconds(status.ctime).to_le_bytes(),
    ]
}
