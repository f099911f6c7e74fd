//! Makes and changes entries below one directory.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use huai_format::entries::Leaves;
use huai_format::path::RelPath;
use huai_sys::call::{self, Outcome};
use huai_sys::change;
use huai_sys::error::{Errno, Error, Result};
use huai_sys::handle::Root;
use huai_sys::stop::Stop;

use super::attributes::NewAttributes;
use super::entry::{NewEntry, NewKind};
use super::workplace::{Ground, Workplace, split};

/// The name of an unfinished entry in the building folder.
const UNFINISHED: &[u8] = b"entry";

/// A maker of entries below a directory.  With a building folder on the same file system each
/// entry is made there and renamed to its place, and directories keep their times; without one,
/// entries are made in place and must not exist.
#[derive(Debug)]
pub struct Maker {
    ground: Ground,
    building: Option<OwnedFd>,
    current: Option<Workplace>,
    /// The path of `current`.
    entered: Vec<u8>,
    unowned: u64,
    displaced: u64,
}

/// A function from the names of a user and a group to their numbers.
pub type OwnerNumbers<'a> =
    dyn FnMut(&[u8], &[u8]) -> huai_git::error::Result<(u32, u32)> + Send + 'a;

impl Maker {
    /// Open `root` and the building folder; `privileged` means that permissions do not matter to this process.
    pub fn open(root: &[u8], building: Option<&[u8]>, privileged: bool) -> Result<Self> {
        let opened =
            |path: &[u8]| call::open_folder(path).map_err(|errno| Error::new("open", path, errno));
        let ground = Ground {
            root: Root::of(opened(root)?, root)?,
            privileged,
            keeps: building.is_some(),
        };
        Ok(Self {
            ground,
            building: building.map(opened).transpose()?,
            current: None,
            entered: Vec::new(),
            unowned: 0,
            displaced: 0,
        })
    }

    /// Make an entry at a path; with a building folder it replaces what is there, else the path must be free, and a
    /// replaced directory is moved to the building folder.
    pub fn make(&mut self, path: &[u8], entry: &NewEntry<'_>) -> Result<()> {
        let (above, name) = split(path);
        self.enter(above)?;
        self.make_here(name, entry)
            .map_err(|errno| failed(errno, above, name))
    }

    /// Make the leaves of the directory at a path from their lines; `owners` returns the numbers of a user and a
    /// group; without it the creator stays the owner.  Fails with `BADMSG` at a malformed line, and with `Stopped`
    /// between two leaves after a stop.
    pub fn make_leaves(
        &mut self,
        path: &[u8],
        lines: &[u8],
        mut owners: Option<&mut OwnerNumbers<'_>>,
        stop: &Stop,
    ) -> huai_git::error::Result<()> {
        let lent = |error: Error| huai_git::error::Error::Lent(Box::new(error));
        self.enter(path).map_err(lent)?;
        let directory = RelPath::trusted(path.to_vec());
        let mut former = (Vec::new(), Vec::new(), None);
        for leaf in Leaves::new(&directory, lines, b"") {
            if stop.is_set() {
                return Err(huai_git::error::Error::Stopped);
            }
            let leaf = leaf.map_err(|_| lent(failed(Errno::BADMSG, path, b"")))?;
            if let Some(owners) = &mut owners {
                // Mostly it has the owners of the leaf before.
                if former.0 != *leaf.owner || former.1 != *leaf.group {
                    let numbers = owners(&leaf.owner, &leaf.group)?;
                    former = (leaf.owner.to_vec(), leaf.group.to_vec(), Some(numbers));
                }
            }
            self.make_here(&leaf.name, &NewEntry::of(&leaf, former.2))
                .map_err(|errno| lent(failed(errno, path, &leaf.name)))?;
        }
        Ok(())
    }

    /// Set the attributes of the directory at a path, after leaving the current one.
    pub fn set_attributes(&mut self, path: &[u8], attributes: &NewAttributes) -> Result<()> {
        let set = |maker: &mut Self| {
            maker.leave_current()?;
            let directory = maker.ground.root.directory(path)?;
            attributes.set(directory.as_fd(), &mut maker.unowned)
        };
        set(self).map_err(|errno| failed(errno, b"", path))
    }

    /// Rename a directory; what cannot be replaced at the new path moves to the building folder, without which this fails.
    pub fn rename_directory(&mut self, old: &[u8], new: &[u8]) -> Result<()> {
        self.rename(old, new)
            .map_err(|errno| failed(errno, b"", old))
    }

    /// Delete a leaf, or move a directory to the building folder, without which this fails.
    pub fn remove(&mut self, path: &[u8]) -> Result<()> {
        let (above, name) = split(path);
        self.enter(above)?;
        self.remove_here(name)
            .map_err(|errno| failed(errno, above, name))
    }

    /// Leave the current directory, restoring its mode and times.
    pub fn leave(&mut self) -> Result<()> {
        self.leave_current()
            .map_err(|errno| failed(errno, b"", &self.entered))
    }

    /// Return how often setting an owner was not permitted.
    pub fn unowned(&self) -> u64 {
        self.unowned
    }

    /// Leave the current directory, and enter another; does nothing if it is the current one.
    fn enter(&mut self, path: &[u8]) -> Result<()> {
        if self.current.is_some() && self.entered == path {
            return Ok(());
        }
        self.leave()?;
        let entered = self.ground.enter(path);
        self.current = Some(entered.map_err(|errno| failed(errno, b"", path))?);
        self.entered = path.to_vec();
        Ok(())
    }

    fn leave_current(&mut self) -> Outcome<()> {
        self.current.take().map_or(Ok(()), Workplace::leave)
    }

    /// Make an entry in the building folder, and rename it over `name`, from which a directory is moved away; without
    /// that folder, make it in place.
    fn make_here(&mut self, name: &[u8], entry: &NewEntry<'_>) -> Outcome<()> {
        let current = self.current.as_ref().ok_or(Errno::BADF)?.handle();
        let Some(building) = &self.building else {
            return entry.make(&self.ground, current, name, &mut self.unowned);
        };
        let building = building.as_fd();
        entry.make(&self.ground, building, UNFINISHED, &mut self.unowned)?;
        replace((building, UNFINISHED), (current, name), || {
            displace(&mut self.displaced, (building, UNFINISHED), building)
        })?;
        if matches!(entry.kind, NewKind::Link(_)) {
            // rename(2) does nothing, without an error, between two names of one file.
            let _ = change::unlink(building, UNFINISHED);
        }
        Ok(())
    }

    /// Rename an entry; what cannot be replaced at the new path is moved to the building folder; `INVAL` without one.
    fn rename(&mut self, old: &[u8], new: &[u8]) -> Outcome<()> {
        let Some(building) = &self.building else {
            return Err(Errno::INVAL);
        };
        self.current.take().map_or(Ok(()), Workplace::leave)?;
        let (from, name) = self.ground.enter_above(old)?;
        let (to, other) = match self.ground.enter_above(new) {
            Ok(found) => found,
            Err(errno) => return from.leave().and(Err(errno)),
        };
        let renamed = replace((from.handle(), name), (to.handle(), other), || {
            displace(&mut self.displaced, (from.handle(), name), building.as_fd())
        });
        let left = to.leave();
        renamed.and(left).and(from.leave())
    }

    /// Delete an entry; a directory is moved to the building folder.
    fn remove_here(&mut self, name: &[u8]) -> Outcome<()> {
        let Some(building) = &self.building else {
            return Err(Errno::INVAL);
        };
        let current = self.current.as_ref().ok_or(Errno::BADF)?.handle();
        match change::unlink(current, name) {
            Err(Errno::ISDIR) => displace(&mut self.displaced, (current, name), building.as_fd()),
            other => other,
        }
    }
}

impl Drop for Maker {
    fn drop(&mut self) {
        // Nothing can report an error here.
        let _ = self.leave_current();
    }
}

/// Rename `from` to `to` in one step, whatever is there.  A former entry that rename(2) does not replace
/// gets the name `from`, and `displace` is called to move it away.
fn replace(
    from: change::NameIn<'_>,
    to: change::NameIn<'_>,
    displace: impl FnOnce() -> Outcome<()>,
) -> Outcome<()> {
    match change::rename(from, to) {
        Err(Errno::ISDIR | Errno::NOTDIR | Errno::NOTEMPTY | Errno::EXIST) => {
            change::exchange(from, to)?;
            displace()
        }
        other => other,
    }
}

/// Move an entry to the building folder, as `old.COUNT`, for deletion by the caller; increases `count`.
fn displace(count: &mut u64, from: change::NameIn<'_>, building: BorrowedFd<'_>) -> Outcome<()> {
    let away = format!("old.{count}");
    *count += 1;
    change::rename(from, (building, away.as_bytes()))
}

/// Make the error of the entry `name` of the directory `above`; without a name, of the directory.
fn failed(errno: Errno, above: &[u8], name: &[u8]) -> Error {
    let between: &[u8] = if above.is_empty() || name.is_empty() {
        b""
    } else {
        b"/"
    };
    Error::new("make", &[above, between, name].concat(), errno)
}
