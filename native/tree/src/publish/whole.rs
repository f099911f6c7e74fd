//! Publishing new directories, each with all that is below it by one rename.
//!
//! Order of writes: directories get owner and mode, deepest first; then what lies elsewhere joins
//! them, and links are made in them; then they get their times, but for those that are left to
//! `settle_directories`; the rename comes last.

use std::os::fd::{AsFd, BorrowedFd};

use huai_format::path::split;
use rustix::io::Errno;

use super::directories::{Directory, OWNER_MAY_ALL};
use super::files::{LastFolder, Staged};
use super::leaves::{Link, Symlink};
use super::row::{At, Done, Failure, Reason, Row, at, check, row};
use super::tree::Tree;
use crate::sys::attributes::{Attributes, Mode, Of};
use crate::sys::call::{self, Outcome};
use crate::sys::change;
use crate::sys::handle::Root;
use crate::sys::listing::Names;
use crate::sys::stop::Stop;

/// What a directory hands down to those that are made in it.
const SET_GROUP: u32 = 0o2000;

/// A directory that lies in the staging area and is not in the tree; its files are prepared.
#[derive(Debug)]
pub struct Whole {
    /// Where it lies.
    pub staged: Staged,
    /// Where it is to be.
    pub path: Vec<u8>,
    /// It and all directories below it, deepest first.  Those that do not lie there are made.
    pub directories: Vec<Held>,
    /// Prepared files that lie elsewhere, and their paths.
    pub others: Vec<(Staged, Vec<u8>)>,
    /// Hardlinks that are to be made; the leaders are below it too.
    pub links: Vec<Link>,
    /// Symlinks that are to be made.
    pub symlinks: Vec<Symlink>,
}

/// A directory of a whole one.
#[derive(Debug)]
pub struct Held {
    /// With its path in the tree.
    pub directory: Directory,
    /// How many names it holds where it lies: with more, something came that nobody wants.
    pub names: usize,
    /// Whether it gets its time before it is published: nothing is left to settle then.
    pub settled: bool,
}

/// What was put where a directory lies.
#[derive(Default)]
struct Gathered<'a> {
    joined: Vec<&'a (Staged, Vec<u8>)>,
    /// Where hardlinks and symlinks lie.
    made: Vec<Vec<u8>>,
}

/// The folder of the last directory: nearly always that of the next one as well.
struct Folder {
    number: u32,
    root: Root,
}

impl Folder {
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
    /// Renames staged directories to their paths, where nothing stands.  One that fails stays as it
    /// was, but for owners and modes of its directories.
    pub fn publish_directories(&mut self, items: &[Whole], stop: &Stop) -> Row {
        let mut last = None;
        let mut names = Names::default();
        row(items, stop, |item| {
            check(&item.path)?;
            let folder = Folder::open(last.take(), item.staged.folder).at(&item.path)?;
            let root = &last.insert(folder).root;
            self.may_join(root, item)?;
            for held in &item.directories {
                if stop.is_set() {
                    return Err(at(&item.path, Errno::CANCELED));
                }
                self.prepare_held(root, item, held, &mut names)?;
            }
            self.gather(root.handle(), item)?;
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

    /// A directory that is made gets more than what is stated if the one above hands it down: the
    /// group, or an ACL.  One that lies ready has the ACL of where it was made.
    fn may_join(&mut self, root: &Root, item: &Whole) -> Done {
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
            Err(at(path, Reason::NotWhole))
        }
    }

    /// Gives a directory owner and mode; its owner can write to it until it gets its final one.
    fn prepare_held(&self, root: &Root, item: &Whole, held: &Held, names: &mut Names) -> Done {
        let path = &held.directory.path;
        check(path)?;
        let lies = lies_at(item, path)?;
        let directory = match root.directory(&lies) {
            Err(Errno::NOENT) => change::make_directory(root.handle(), &lies)
                .and_then(|()| root.directory(&lies))
                .at(path)?,
            opened => opened.at(path)?,
        };
        let mut found = 0;
        let count = |_: &[u8], _| {
            found += 1;
            false
        };
        names.read(directory.as_fd(), count).at(path)?;
        let Some(mut first) = held.directory.attributes.filter(|_| found == held.names) else {
            return Err(at(path, Reason::NotWhole));
        };
        let status = call::status(directory.as_fd()).at(path)?;
        let of = Of::Own(root.handle(), &lies);
        let chowned = first.set_owner(of, &status).at(path)?;
        first.mode = Mode::Exact(self.anew(first.mode) | OWNER_MAY_ALL);
        first.set_mode(of, &status, chowned).at(path)
    }

    /// Completes the directory where it lies, and renames it.
    fn gather(&mut self, folder: BorrowedFd<'_>, item: &Whole) -> Done {
        let mut gathered = Gathered::default();
        let outcome = fill(folder, item, &mut gathered)
            .and_then(|()| set_times(folder, item))
            .and_then(|()| self.put_new(folder, item));
        if outcome.is_err() {
            for lies in gathered.made {
                // One that stays is cleared away with the staging area.
                _ = change::unlink(folder, &lies);
            }
            for (staged, path) in gathered.joined {
                // One that cannot go back is missed when it is to be published by itself.
                drop(part(folder, item, staged, path));
            }
        }
        outcome
    }

    fn put_new(&mut self, folder: BorrowedFd<'_>, item: &Whole) -> Done {
        let (above, name) = split(&item.path);
        let renamed = self.folders.permitted(&[above], |folders| {
            let above = folders.open(above)?;
            change::rename_to_nothing((folder, &item.staged.name), (above.as_fd(), name))
        });
        renamed.at(&item.path)
    }
}

/// Where the directory or file that is to be at `path` lies.
fn lies_at(item: &Whole, path: &[u8]) -> Result<Vec<u8>, Failure> {
    let below = path.strip_prefix(item.path.as_slice());
    let below = below.filter(|rest| rest.is_empty() || rest.starts_with(b"/"));
    let below = below.ok_or_else(|| at(path, Reason::NotWhole))?;
    Ok([&item.staged.name, below].concat())
}

fn fill<'a>(folder: BorrowedFd<'_>, item: &'a Whole, gathered: &mut Gathered<'a>) -> Done {
    let mut last = LastFolder::default();
    for other in &item.others {
        let (staged, path) = other;
        join(folder, item, (staged, &mut last), path)?;
        gathered.joined.push(other);
    }
    for link in &item.links {
        let path = &link.file.path;
        check(path)?;
        let leader = link
            .leader
            .as_ref()
            .ok_or_else(|| at(path, Reason::NoLeader))?;
        let (from, lies) = (lies_at(item, leader)?, lies_at(item, path)?);
        change::make_link(folder, &from, folder, &lies).at(path)?;
        gathered.made.push(lies);
    }
    for symlink in &item.symlinks {
        let path = &symlink.path;
        check(path)?;
        let lies = lies_at(item, path)?;
        change::make_symlink(folder, &lies, &symlink.target).at(path)?;
        gathered.made.push(lies.clone());
        let status = call::status_at(folder, &lies).at(path)?;
        let of = Of::Own(folder, &lies);
        symlink.attributes.set_of_symlink(of, &status).at(path)?;
    }
    Ok(())
}

fn set_times(folder: BorrowedFd<'_>, item: &Whole) -> Done {
    for held in item.directories.iter().filter(|held| held.settled) {
        let path = &held.directory.path;
        if let Some(wanted) = held.directory.attributes {
            change::set_mtime_at(folder, &lies_at(item, path)?, wanted.time()).at(path)?;
        }
    }
    Ok(())
}

fn join(
    folder: BorrowedFd<'_>,
    item: &Whole,
    (staged, last): (&Staged, &mut LastFolder),
    path: &[u8],
) -> Done {
    check(path)?;
    let lies = lies_at(item, path)?;
    let from = last.open(staged.folder).at(path)?;
    change::rename_to_nothing((from, &staged.name), (folder, &lies)).at(path)
}

/// Undoes `join`.
fn part(folder: BorrowedFd<'_>, item: &Whole, staged: &Staged, path: &[u8]) -> Done {
    let lies = lies_at(item, path)?;
    let from = call::reopen(staged.folder).at(path)?;
    change::rename((folder, &lies), (from.as_fd(), &staged.name)).at(path)
}
