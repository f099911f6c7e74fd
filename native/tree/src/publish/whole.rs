//! Publishes new directories, each with everything below it by one rename.
//!
//! Order of writes: directories get owner and mode, deepest first; then files from elsewhere are
//! moved into them, and links are made in them; then they get their times, except those that are
//! left to `settle_directories`; the rename comes last.

use std::os::fd::{AsFd, BorrowedFd};

use huai_format::path::{below, split};
use huai_sys::attributes::{Attributes, Mode, Of};
use huai_sys::call::{self, Outcome};
use huai_sys::change;
use huai_sys::error::Errno;
use huai_sys::handle::Root;
use huai_sys::listing::Names;
use huai_sys::stop::Stop;

use super::directories::{OWNER_MAY_ALL, WantedDirectory};
use super::files::{LastFolder, Staged};
use super::leaves::{Link, Symlink};
use super::row::{At, Done, FailureReason, OperationFailure, RowResult, at, reject_reserved, row};
use super::tree::{SET_GROUP, Tree};

/// A staged directory that is not in the tree; its files are prepared.
#[derive(Debug)]
pub struct WholeDirectory {
    /// The place in the staging area.
    pub staged: Staged,
    /// The path in the tree.
    pub path: Vec<u8>,
    /// The directory and all directories below it, deepest first.  Missing ones are made.
    pub directories: Vec<StagedDirectory>,
    /// The prepared files that are staged elsewhere, and their paths.
    pub others: Vec<(Staged, Vec<u8>)>,
    /// The hardlinks to make; the leaders are below it too.
    pub links: Vec<Link>,
    /// The symlinks to make.
    pub symlinks: Vec<Symlink>,
}

/// A directory of a whole one.
#[derive(Debug)]
pub struct StagedDirectory {
    /// The directory, with its path in the tree.
    pub directory: WantedDirectory,
    /// The number of its staged names: a larger one means that an unwanted entry appeared.
    pub names: usize,
    /// True if it gets its time before it is published, so that it is final.
    pub settled: bool,
}

/// The entries that were added to a staged directory.
#[derive(Default)]
struct Gathered<'a> {
    /// The files that were moved into it.
    moved: Vec<&'a (Staged, Vec<u8>)>,
    /// The staged hardlinks and symlinks.
    made: Vec<Vec<u8>>,
}

/// The folder of the last directory, which is nearly always that of the next one.
struct Folder {
    number: u32,
    root: Root,
}

impl Folder {
    /// Return `last` if it is the folder that this process has open as `number`, or reopen that.
    fn open(last: Option<Self>, number: u32) -> Outcome<Self> {
        match last {
            Some(last) if last.number == number => Ok(last),
            _ => Ok(Self {
                number,
                root: Root::try_of(call::reopen(number)?)?,
            }),
        }
    }
}

impl Tree {
    /// Rename staged directories to their paths, which must be free.  A directory that fails stays staged as it
    /// was, except for owners and modes of directories.
    pub fn publish_directories(&mut self, items: &[WholeDirectory], stop: &Stop) -> RowResult {
        let mut last = None;
        let mut names = Names::default();
        row(items, stop, |item| {
            reject_reserved(&item.path)?;
            let folder = Folder::open(last.take(), item.staged.folder).at(&item.path)?;
            let root = &last.insert(folder).root;
            self.check_inherited(root, item)?;
            for held in &item.directories {
                if stop.is_set() {
                    return Err(at(&item.path, Errno::CANCELED));
                }
                self.prepare_held(root, item, held, &mut names)?;
            }
            self.complete_and_rename(root.handle(), item)?;
            for held in &item.directories {
                if let Some(Attributes {
                    mode: Mode::Kept(_),
                    ..
                }) = held.directory.attributes
                {
                    self.fresh.insert(held.directory.path.clone());
                }
            }
            Ok(())
        })
    }

    /// Fail with `NotWhole` if a directory that is made at the path would inherit what the staged one did not:
    /// the group of its parent, or another default ACL.
    fn check_inherited(&mut self, root: &Root, item: &WholeDirectory) -> Done {
        let path = &item.path;
        let above = self.folders.open(split(path).0).at(path)?;
        let status = call::status(above.as_fd()).at(path)?;
        let staged = root.directory(&item.staged.name).at(path)?;
        let is_alike = || {
            let (wanted, found) = (above.as_fd(), staged.as_fd());
            Ok(call::default_acl(wanted)? == call::default_acl(found)?)
        };
        if status.mode & SET_GROUP == 0 && is_alike().at(path)? {
            Ok(())
        } else {
            Err(at(path, FailureReason::NotWhole))
        }
    }

    /// Set owner and mode of a staged directory, made if missing, with u+rwx added.  Fails with `NotWhole` if it has
    /// another number of names than stated, or no attributes.
    fn prepare_held(
        &self,
        root: &Root,
        item: &WholeDirectory,
        held: &StagedDirectory,
        names: &mut Names,
    ) -> Done {
        let path = &held.directory.path;
        reject_reserved(path)?;
        let staged_path = staged_path(item, path)?;
        let directory = match root.directory(&staged_path) {
            Err(Errno::NOENT) => change::make_directory(root.handle(), &staged_path)
                .and_then(|()| root.directory(&staged_path))
                .at(path)?,
            opened => opened.at(path)?,
        };
        let mut name_count = 0;
        let count = |_: &[u8], _| {
            name_count += 1;
            false
        };
        names.read(directory.as_fd(), count).at(path)?;
        let Some(mut first) = held
            .directory
            .attributes
            .filter(|_| name_count == held.names)
        else {
            return Err(at(path, FailureReason::NotWhole));
        };
        let status = call::status(directory.as_fd()).at(path)?;
        let of = Of::Own(root.handle(), &staged_path);
        let chowned = first.set_owner(of, &status).at(path)?;
        first.mode = Mode::Exact(self.new_mode(first.mode) | OWNER_MAY_ALL);
        first.set_mode(of, &status, chowned).at(path)
    }

    /// Complete the staged directory, and rename it; after an error, undo what was added to it.
    fn complete_and_rename(&mut self, folder: BorrowedFd<'_>, item: &WholeDirectory) -> Done {
        let mut gathered = Gathered::default();
        let outcome = fill(folder, item, &mut gathered)
            .and_then(|()| set_times(folder, item))
            .and_then(|()| self.rename_staged(folder, item));
        if outcome.is_err() {
            for staged_path in gathered.made {
                // A remaining one is removed with the staging area.
                _ = change::unlink(folder, &staged_path);
            }
            for (staged, path) in gathered.moved {
                // A file that cannot go back is missed when it is to be published by itself.
                drop(move_back(folder, item, staged, path));
            }
        }
        outcome
    }

    /// Rename a staged directory to its path, which must be free.
    fn rename_staged(&mut self, folder: BorrowedFd<'_>, item: &WholeDirectory) -> Done {
        let (above, name) = split(&item.path);
        let renamed = self.folders.with_permission(&[above], |folders| {
            let above = folders.open(above)?;
            change::rename_to_nothing((folder, &item.staged.name), (above.as_fd(), name))
        });
        renamed.at(&item.path)
    }
}

/// Return the staged place of the directory or file for `path`; `NotWhole` if that is not in
/// `item`.
fn staged_path(item: &WholeDirectory, path: &[u8]) -> Result<Vec<u8>, OperationFailure> {
    let below = below(path, &item.path).ok_or_else(|| at(path, FailureReason::NotWhole))?;
    Ok([&item.staged.name, below].concat())
}

/// Move files from elsewhere into the staged directory, and make hardlinks and symlinks in it; adds them to
/// `gathered`.
fn fill<'a>(folder: BorrowedFd<'_>, item: &'a WholeDirectory, gathered: &mut Gathered<'a>) -> Done {
    let mut last = LastFolder::default();
    for other in &item.others {
        let (staged, path) = other;
        move_in(folder, item, (staged, &mut last), path)?;
        gathered.moved.push(other);
    }
    for link in &item.links {
        let path = &link.file.path;
        reject_reserved(path)?;
        let leader = link
            .leader
            .as_ref()
            .ok_or_else(|| at(path, FailureReason::NoLeader))?;
        let (from, staged_path) = (staged_path(item, leader)?, staged_path(item, path)?);
        change::make_link(folder, &from, folder, &staged_path).at(path)?;
        gathered.made.push(staged_path);
    }
    for symlink in &item.symlinks {
        let path = &symlink.path;
        reject_reserved(path)?;
        let staged_path = staged_path(item, path)?;
        change::make_symlink(folder, &staged_path, &symlink.target).at(path)?;
        gathered.made.push(staged_path.clone());
        let status = call::status_at(folder, &staged_path).at(path)?;
        let of = Of::Own(folder, &staged_path);
        symlink.attributes.set_of_symlink(of, &status).at(path)?;
    }
    Ok(())
}

/// Set the times of the staged directories that are settled.
fn set_times(folder: BorrowedFd<'_>, item: &WholeDirectory) -> Done {
    for held in item.directories.iter().filter(|held| held.settled) {
        let path = &held.directory.path;
        if let Some(wanted) = held.directory.attributes {
            change::set_mtime_at(folder, &staged_path(item, path)?, wanted.time()).at(path)?;
        }
    }
    Ok(())
}

/// Rename a file that is staged elsewhere to its place in the staged directory.
fn move_in(
    folder: BorrowedFd<'_>,
    item: &WholeDirectory,
    (staged, last): (&Staged, &mut LastFolder),
    path: &[u8],
) -> Done {
    reject_reserved(path)?;
    let staged_path = staged_path(item, path)?;
    let from = last.open(staged.folder).at(path)?;
    change::rename_to_nothing((from, &staged.name), (folder, &staged_path)).at(path)
}

/// Undo `move_in`.
fn move_back(folder: BorrowedFd<'_>, item: &WholeDirectory, staged: &Staged, path: &[u8]) -> Done {
    let staged_path = staged_path(item, path)?;
    let from = call::reopen(staged.folder).at(path)?;
    change::rename((folder, &staged_path), (from.as_fd(), &staged.name)).at(path)
}
