//! Collects the entries of a directory: leaves, subdirectories, and problems.

use std::ffi::CStr;
use std::mem::MaybeUninit;

use huai_format::entries::DIRECTORY_MODE;
use huai_format::limits::{NAME_BYTES, PATH_BYTES, TARGET_BYTES};
use huai_format::path::is_reserved;
use huai_sys::call::{self, FileType, Outcome, Status};
use huai_sys::error::Errno;
use huai_sys::listing::reserve;

use super::frame::{Directory, Frame, Problem, Reason};
use super::large::{Parts, ReadDirectory};
use super::leaf::{Leaf, Leaves};
use super::place::{OpenDirectory, Tree};
use crate::walk::owners::LastOwners;
use crate::walk::{exclude, line};

/// The size in bytes from which buffers are moved, not copied.
const LARGE: usize = 64 << 10;

/// The entries of a directory so far.
#[derive(Debug, Default)]
pub(super) struct Entries {
    attributes: Vec<u8>,
    leaves: Leaves,
    /// The leaves of a large directory.
    parts: Parts,
    are_many: bool,
    /// The names of subdirectories, each ended by NUL.
    children: Vec<u8>,
    problems: Vec<Problem>,
    skipped: u64,
}

impl Entries {
    /// Begin a directory.
    pub(super) fn begin(&mut self) {
        self.attributes.clear();
        self.leaves.clear();
        self.parts.clear();
        self.are_many = false;
        self.children.clear();
        self.problems.clear();
        self.skipped = 0;
    }

    /// Expect more entries than are passed on in one piece.
    pub(super) fn expect_many(&mut self) {
        self.are_many = true;
    }

    /// Set the attributes of the directory itself; a time that does not fit becomes the nearest one, and a problem.
    pub(super) fn add_itself(
        &mut self,
        tree: &Tree<'_>,
        owners: &mut LastOwners,
        status: &Status,
    ) -> Outcome<()> {
        line::put_time(&mut self.attributes, line::nearest(status.mtime));
        line::put_mode(&mut self.attributes, status.mode, DIRECTORY_MODE);
        let fields = tree.owners_of(owners, status)?;
        self.attributes.extend_from_slice(fields);
        if line::nanoseconds(status.mtime).is_none() {
            self.add_problem(b"", Reason::Time)?;
        }
        Ok(())
    }

    /// True unless a pattern leaves out an entry of this type, or its name or path is too long, which is counted.  An
    /// unknown type is decided in `add`.
    pub(super) fn wants(
        &mut self,
        opened: &OpenDirectory<'_>,
        name: &[u8],
        kind: FileType,
    ) -> bool {
        if kind != FileType::Unknown && opened.leaves_out(name, kind == FileType::Directory) {
            return false;
        }
        let above = if opened.path.is_empty() {
            0
        } else {
            opened.path.len() + 1
        };
        let fits = name.len() <= NAME_BYTES && above + name.len() <= PATH_BYTES;
        self.skipped += u64::from(!fits);
        fits
    }

    /// Add an entry as a leaf, a subdirectory or a problem; a vanished entry is left out.
    ///
    /// Reserved names and known directories are added without a stat, which needs search permission.  An
    /// entry that cannot be examined becomes a problem.
    pub(super) fn add(
        &mut self,
        opened: &OpenDirectory<'_>,
        owners: &mut LastOwners,
        name: &CStr,
        kind: FileType,
    ) -> Outcome<()> {
        let bytes = name.to_bytes();
        if kind != FileType::Unknown && is_reserved(bytes) {
            return self.add_problem(bytes, Reason::Reserved);
        }
        if kind == FileType::Directory {
            return self.add_child(name);
        }
        match call::status_at(opened.handle, name) {
            Ok(status) => self.add_known(opened, owners, (name, kind), status),
            Err(Errno::NOENT) => Ok(()),
            Err(errno) => self.add_problem(bytes, Reason::Errno(errno)),
        }
    }

    /// Add an entry that was examined; `listed` is the type that the directory stated, which may have changed since.
    /// An unfinished file, and one whose size or time does not fit, is a problem; a special file is only counted.
    fn add_known(
        &mut self,
        opened: &OpenDirectory<'_>,
        owners: &mut LastOwners,
        (name, listed): (&CStr, FileType),
        status: Status,
    ) -> Outcome<()> {
        let bytes = name.to_bytes();
        let is_directory = status.kind == FileType::Directory;
        let undecided = listed == FileType::Unknown || is_directory;
        if undecided && opened.leaves_out(bytes, is_directory) {
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
            FileType::RegularFile => self.add_leaf(&Leaf {
                name: bytes,
                owners: opened.tree.owners_of(owners, &status)?,
                status,
                target: None,
            }),
            FileType::Symlink => self.add_symlink(opened, owners, name, status),
            _ => {
                self.skipped += 1;
                Ok(())
            }
        }
    }

    /// Add a symlink; a vanished one is left out.  If no snapshot can hold the target, the symlink is counted as skipped.
    fn add_symlink(
        &mut self,
        opened: &OpenDirectory<'_>,
        owners: &mut LastOwners,
        name: &CStr,
        status: Status,
    ) -> Outcome<()> {
        let mut room = [MaybeUninit::uninit(); TARGET_BYTES + 1];
        let target = match call::read_link(opened.handle, name, &mut room) {
            Ok(target) => target,
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return self.add_problem(name.to_bytes(), Reason::Errno(errno)),
        };
        if target.is_empty() || target.len() > TARGET_BYTES {
            self.skipped += 1;
            return Ok(());
        }
        self.add_leaf(&Leaf {
            name: name.to_bytes(),
            owners: opened.tree.owners_of(owners, &status)?,
            status,
            target: Some(target),
        })
    }

    fn add_leaf(&mut self, leaf: &Leaf<'_>) -> Outcome<()> {
        if self.are_many {
            self.parts.add(leaf, &mut self.problems)
        } else {
            self.leaves.add(leaf)
        }
    }

    fn add_child(&mut self, name: &CStr) -> Outcome<()> {
        let bytes = name.to_bytes_with_nul();
        reserve(&mut self.children, bytes.len())?;
        self.children.extend_from_slice(bytes);
        Ok(())
    }

    fn add_problem(&mut self, name: &[u8], reason: Reason) -> Outcome<()> {
        reserve(&mut self.problems, 1)?;
        self.problems.push(Problem {
            name: name.to_vec(),
            reason,
        });
        Ok(())
    }

    /// Return `directory` with all its entries, a large one in parts; `is_open` means that others can read it.
    pub(super) fn end(&mut self, directory: Directory, is_open: bool) -> Outcome<ReadDirectory> {
        let head = Directory {
            attributes: self.attributes.clone(),
            skipped: self.skipped,
            ..directory
        };
        if self.are_many {
            let large = self.parts.end(head, is_open, &mut self.problems)?;
            return Ok(ReadDirectory::Large(large));
        }
        let Leaves {
            lines,
            identities,
            hardlinks,
            unreadable,
        } = &mut self.leaves;
        Ok(ReadDirectory::Frame(Frame::Read(Directory {
            leaves: take_content(lines)?,
            identities: take_content(identities)?,
            is_plain: is_open && self.problems.is_empty() && *unreadable == 0,
            problems: std::mem::take(&mut self.problems),
            hardlinks: *hardlinks,
            unreadable: *unreadable,
            ..head
        })))
    }

    /// Return the subdirectories' names in order, each ended by NUL.
    pub(super) fn take_children(&mut self) -> Outcome<Vec<u8>> {
        take_content(&mut self.children)
    }
}

/// Return the content of a buffer; a small one keeps its memory for the next directory.
fn take_content(buffer: &mut Vec<u8>) -> Outcome<Vec<u8>> {
    if buffer.len() >= LARGE {
        let mut content = std::mem::take(buffer);
        content.shrink_to_fit();
        return Ok(content);
    }
    let mut content = Vec::new();
    content
        .try_reserve_exact(buffer.len())
        .map_err(|_| Errno::NOMEM)?;
    content.extend_from_slice(buffer);
    Ok(content)
}
