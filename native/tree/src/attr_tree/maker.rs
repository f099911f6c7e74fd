//! Carries out records below one directory.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use huai_format::line::Leaves;
use huai_format::path::RelPath;
use huai_sys::call::{self, Outcome};
use huai_sys::change;
use huai_sys::error::{Errno, Error, Result};
use huai_sys::handle::Root;
use huai_sys::stop::Stop;

use super::entry::{Entry, Kind, OwnerNumbers};
use super::record::{self, Operation, Record};
use super::workplace::{Ground, Workplace};

/// The name of an unfinished entry in the building folder.
const UNFINISHED: &[u8] = b"entry";

/// An executor of records below a directory.  With a building folder on the same file system each
/// entry is made there and renamed to its place, and directories keep their times; without one,
/// entries are made in place and must not exist.
#[derive(Debug)]
pub struct Maker {
    ground: Ground,
    building: Option<OwnedFd>,
    current: Option<Workplace>,
    /// The path of `current`.
    entered: Vec<u8>,
    owners: OwnerNumbers,
    unowned: u64,
    displaced: u64,
}

/// An error, and the name in the current directory that it is about, if not the record's.
type Failure = (Errno, Option<Vec<u8>>);

impl Maker {
    /// Open `root`; `privileged` means that permissions do not matter to this process.
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
            owners: OwnerNumbers::default(),
            unowned: 0,
            displaced: 0,
        })
    }

    /// Carry out records in order.  After an error, which names the path from the root, the rest is
    /// not done; a stop takes effect between two records.
    pub fn apply(&mut self, records: &[u8], stop: &Stop) -> Result<()> {
        let mut rest = records;
        while !rest.is_empty() {
            if stop.is_set() {
                return Err(failed(Errno::CANCELED, b"", b""));
            }
            let Some((record, after)) = record::take_record(rest) else {
                return Err(failed(Errno::INVAL, b"", b""));
            };
            self.perform(&record).map_err(|(errno, name)| match name {
                Some(name) => failed(errno, &self.entered, &name),
                None if is_inside(record.operation) => failed(errno, &self.entered, record.name),
                None => failed(errno, b"", record.name),
            })?;
            rest = after;
        }
        Ok(())
    }

    /// Leave the current directory, restoring its mode and times.
    pub fn leave(&mut self) -> Result<()> {
        self.leave_current()
            .map_err(|errno| failed(errno, b"", &self.entered))
    }

    /// Return the number of entries whose owner could not be set.
    pub fn unowned(&self) -> u64 {
        self.unowned
    }

    fn perform(&mut self, record: &Record<'_>) -> std::result::Result<(), Failure> {
        let plain = |errno| (errno, None);
        match record.operation {
            Operation::Enter => self.enter(record.name),
            Operation::Leaves => self.make_leaves(record),
            Operation::Attributes => self.set_attributes(record).map_err(plain),
            Operation::Move => self.rename_directory(record).map_err(plain),
            Operation::Remove => self.remove(record.name).map_err(plain),
            Operation::Owner => {
                let (owners, name) = match record.name.split_first() {
                    Some((b'u', name)) => (&mut self.owners.users, name),
                    Some((b'g', name)) => (&mut self.owners.groups, name),
                    _ => return Err(plain(Errno::INVAL)),
                };
                owners.insert(name.to_vec(), record.attributes.user);
                Ok(())
            }
            _ => entry_of(record)
                .and_then(|entry| self.make(record.name, &entry))
                .map_err(plain),
        }
    }

    fn enter(&mut self, path: &[u8]) -> std::result::Result<(), Failure> {
        self.leave_current()
            .map_err(|errno| (errno, Some(Vec::new())))?;
        self.current = Some(self.ground.enter(path).map_err(|errno| (errno, None))?);
        self.entered = path.to_vec();
        Ok(())
    }

    fn leave_current(&mut self) -> Outcome<()> {
        self.current.take().map_or(Ok(()), Workplace::leave)
    }

    /// Make an entry in the building folder, and rename it over `name`; without one, make it in place.
    fn make(&mut self, name: &[u8], entry: &Entry<'_>) -> Outcome<()> {
        let current = self.current.as_ref().ok_or(Errno::BADF)?.handle();
        let Some(building) = &self.building else {
            return entry.make(&self.ground, current, name, &mut self.unowned);
        };
        let building = building.as_fd();
        entry.make(&self.ground, building, UNFINISHED, &mut self.unowned)?;
        replace((building, UNFINISHED), (current, name), || {
            displace(&mut self.displaced, (building, UNFINISHED), building)
        })?;
        if matches!(entry.kind, Kind::Link(_)) {
            // rename(2) does nothing, without an error, between two names of one file.
            let _ = change::unlink(building, UNFINISHED);
        }
        Ok(())
    }

    /// Make all leaves of the current directory.
    fn make_leaves(&mut self, listing: &Record<'_>) -> std::result::Result<(), Failure> {
        let text = listing.other.ok_or((Errno::INVAL, None))?;
        let usual = (listing.attributes.user, listing.attributes.group);
        let directory = RelPath::trusted(listing.name.to_vec());
        for leaf in Leaves::new(&directory, text, b"") {
            let leaf = leaf.map_err(|_| (Errno::BADMSG, Some(Vec::new())))?;
            let entry = Entry::of(&leaf, usual, &self.owners).ok_or(Errno::BADMSG);
            let outcome = entry.and_then(|entry| self.make(&leaf.name, &entry));
            outcome.map_err(|errno| (errno, Some(leaf.name.to_vec())))?;
        }
        Ok(())
    }

    fn set_attributes(&mut self, record: &Record<'_>) -> Outcome<()> {
        self.leave_current()?;
        let directory = self.ground.root.directory(record.name)?;
        record.attributes.set(directory.as_fd(), &mut self.unowned)
    }

    /// Rename a directory, removing a leaf at the new path.
    fn rename_directory(&mut self, record: &Record<'_>) -> Outcome<()> {
        let (Some(building), Some(other)) = (&self.building, record.other) else {
            return Err(Errno::INVAL);
        };
        self.current.take().map_or(Ok(()), Workplace::leave)?;
        let (from, name) = self.ground.enter_above(record.name)?;
        let (to, other) = match self.ground.enter_above(other) {
            Ok(found) => found,
            Err(errno) => return from.leave().and(Err(errno)),
        };
        let renamed = replace((from.handle(), name), (to.handle(), other), || {
            displace(&mut self.displaced, (from.handle(), name), building.as_fd())
        });
        let left = to.leave();
        renamed.and(left).and(from.leave())
    }

    fn remove(&mut self, name: &[u8]) -> Outcome<()> {
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

/// Return true if the record's name is in the current directory.
fn is_inside(operation: Operation) -> bool {
    !matches!(
        operation,
        Operation::Enter | Operation::Attributes | Operation::Move | Operation::Owner
    )
}

fn entry_of<'a>(record: &Record<'a>) -> Outcome<Entry<'a>> {
    let other = record.other.ok_or(Errno::INVAL);
    let kind = match record.operation {
        Operation::File => Kind::File(u64::try_from(record.size).map_err(|_| Errno::INVAL)?),
        Operation::Symlink => Kind::Symlink(other?),
        Operation::Link => Kind::Link(other?),
        _ => Kind::Directory,
    };
    Ok(Entry {
        kind,
        attributes: record.attributes,
    })
}

/// Rename to a place in one step, whatever is there.  A former entry that cannot be replaced ends
/// up at the old place of the new one, and `displace` has to move it.
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

/// Move an entry whose name is needed, or needs to go, to the building folder for deletion.
fn displace(count: &mut u64, from: change::NameIn<'_>, building: BorrowedFd<'_>) -> Outcome<()> {
    let away = format!("old.{count}");
    *count += 1;
    change::rename(from, (building, away.as_bytes()))
}

fn failed(errno: Errno, above: &[u8], name: &[u8]) -> Error {
    let between: &[u8] = if above.is_empty() || name.is_empty() {
        b""
    } else {
        b"/"
    };
    Error::new("make", &[above, between, name].concat(), errno)
}
