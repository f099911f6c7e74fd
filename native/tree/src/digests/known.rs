//! The tables of earlier commits: that of the last one, and the remains of killed ones.

use std::os::fd::{AsFd, BorrowedFd};

use huai_format::entries::Digest;
use huai_sys::call::{self, Outcome};
use huai_sys::change;
use huai_sys::error::Errno;

use super::state::{ScannedFile, State, Validity};
use super::table::Table;
use super::writer::Writer;

/// The table of the last commit, in the order of its scan.
pub(super) const LAST: &[u8] = b"digests";
/// The table that is being written, or was when its commit was killed.
const NEW: &[u8] = b"digests.new";
/// The states of commits by lists and of killed commits, in any order.
pub(super) const LEFT: &[u8] = b"digests.left";
/// The table into which both are merged.
const MERGED: &[u8] = b"digests.merged";

/// The known digest of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KnownDigest {
    /// The state with its digest.
    Known(State),
    /// The state with its digest, provided that the file has the same time of birth.
    IfBornThen(State),
    /// A state or digest is missing.
    Unknown,
}

impl KnownDigest {
    /// Return the same answer, with a known state on the file system of this number.
    pub(super) fn on(self, file_system: u64) -> Self {
        match self {
            Self::Known(state) => Self::Known(state.on(file_system)),
            other => other,
        }
    }

    /// Return the digest with the time of birth that it requires; `None` if it requires none, or no digest is known.
    pub(super) fn if_born(self) -> Option<(i64, Digest)> {
        match self {
            Self::IfBornThen(state) => Some((state.birth()?, state.digest())),
            _ => None,
        }
    }
}

/// The earlier tables, and the position in the last one.
#[derive(Debug)]
pub(super) struct EarlierTables {
    last: Option<Table>,
    left: Option<Table>,
    /// The tables in other folders.
    others: Vec<Option<Table>>,
    /// The position of the next expected state in the last table.
    next: u64,
}

impl EarlierTables {
    /// Open the tables, after adding that of a killed commit to the remains; those in `others` are
    /// only read, and a folder there that cannot be opened is ignored.
    pub(super) fn open(folder: BorrowedFd<'_>, others: &[Vec<u8>]) -> Outcome<Self> {
        keep_left(folder)?;
        let mut tables = Vec::new();
        for other in others {
            let Ok(other) = call::open_folder(other) else {
                continue; // a cache, which may be deleted
            };
            for name in [LAST, LEFT, NEW] {
                tables.push(Table::open(other.as_fd(), name)?);
            }
        }
        Ok(Self {
            last: Table::open(folder, LAST)?,
            left: Table::open(folder, LEFT)?,
            others: tables,
            next: 0,
        })
    }

    /// Look up the digest of a file; files come in the order of the scan.  An earlier version's number of the file
    /// system counts too.
    pub(super) fn look_up(&mut self, seen: &ScannedFile) -> Outcome<KnownDigest> {
        match (self.look_up_state(&seen.now)?, seen.earlier()) {
            (KnownDigest::Unknown, Some(earlier)) => {
                let answer = self.look_up_state(&earlier)?;
                Ok(answer.on(seen.now.file_system()))
            }
            (answer, _) => Ok(answer),
        }
    }

    /// Look up a state, first at the expected position of the last table; sets the next position.
    fn look_up_state(&mut self, now: &State) -> Outcome<KnownDigest> {
        if let Some(last) = &mut self.last {
            let next = last.at(self.next)?;
            if let Some(state) = next.filter(|state| state.inode() == now.inode()) {
                // The state may be that of another name of the file.
                if state.links() == 1 || state.validity_for(now) == Validity::Same {
                    self.next += 1;
                    return self.look_up_left(state, now);
                }
            }
        }
        if let Some((place, found)) = find(&mut self.last, now)? {
            self.next = place + 1;
            return self.look_up_left(found, now);
        }
        let tables = std::iter::once(&mut self.left).chain(&mut self.others);
        let mut best = KnownDigest::Unknown;
        for table in tables {
            match find(table, now)?.map(|(_, found)| answer(&found, now)) {
                Some(known @ KnownDigest::Known(_)) => return Ok(known),
                None | Some(KnownDigest::Unknown) => {}
                Some(other) => best = other,
            }
        }
        Ok(best)
    }

    /// Return the known digest of a file by `state` of the last table, or by a better state of the remains.
    fn look_up_left(&mut self, state: State, now: &State) -> Outcome<KnownDigest> {
        if state.validity_for(now) == Validity::Same {
            return Ok(answer(&state, now));
        }
        let left = find(&mut self.left, now)?;
        let earlier: Vec<_> = left.into_iter().map(|(_, found)| found).collect();
        Ok(match judge(&earlier, now) {
            KnownDigest::Unknown => answer(&state, now),
            found => found,
        })
    }

    /// Return true if exactly this state is at a place of the last table.
    pub(super) fn has(&mut self, place: u64, state: &State) -> Outcome<bool> {
        match &mut self.last {
            Some(last) => Ok(last.at(place)?.as_ref() == Some(state)),
            None => Ok(false),
        }
    }

    /// Copy the first `count` states of the last table.  Fails with `IO` if one is missing.
    pub(super) fn copy(&mut self, count: u64, to: &mut Writer) -> Outcome<()> {
        for place in 0..count {
            let state = self.last.as_mut().map_or(Ok(None), |last| last.at(place))?;
            to.add(state.ok_or(Errno::IO)?)?;
        }
        Ok(())
    }

    /// Return true if the last table has `count` states, and there are no remains.
    pub(super) fn is_only(&mut self, count: u64) -> Outcome<bool> {
        match (&mut self.last, &self.left) {
            (Some(last), None) => last.ends(count),
            _ => Ok(false),
        }
    }
}

/// Return the best state in a table for a file, and its place: the same one, or the first with its
/// inode; `None` without these.
fn find(table: &mut Option<Table>, now: &State) -> Outcome<Option<(u64, State)>> {
    let mut first = None;
    let Some(table) = table else { return Ok(None) };
    for place in table.places(now.key())? {
        if let Some(state) = table.at(place)?.filter(|it| it.inode() == now.inode()) {
            if state.validity_for(now) == Validity::Same {
                return Ok(Some((place, state)));
            }
            first = first.or(Some((place, state)));
        }
    }
    Ok(first)
}

/// Return the known digest of a file, given earlier states of its inode: of the same state, or else to be confirmed
/// by the time of birth.
pub(super) fn judge(earlier: &[State], now: &State) -> KnownDigest {
    let mut best = KnownDigest::Unknown;
    for state in earlier {
        match answer(state, now) {
            known @ KnownDigest::Known(_) => return known,
            KnownDigest::Unknown => {}
            other => best = other,
        }
    }
    best
}

/// Return the known digest of a file, given one state of its inode; `IfBornThen` if only the time of birth can
/// confirm it.
fn answer(state: &State, now: &State) -> KnownDigest {
    match state.validity_for(now) {
        Validity::Same => KnownDigest::Known(now.with(state.birth(), state.digest())),
        Validity::IfBornThen => KnownDigest::IfBornThen(*state),
        Validity::Nothing => KnownDigest::Unknown,
    }
}

/// Make the file for the table of this commit, which must not exist.
pub(super) fn create(folder: BorrowedFd<'_>) -> Outcome<Writer> {
    Writer::create(folder, NEW)
}

/// Replace the last table with that of this commit, and delete the remains.
pub(super) fn replace(folder: BorrowedFd<'_>) -> Outcome<()> {
    change::rename((folder, NEW), (folder, LAST))?;
    remove(folder, LEFT)
}

/// Add the table of a killed commit, if there is one, to the remains.  One of another version is deleted.
fn keep_left(folder: BorrowedFd<'_>) -> Outcome<()> {
    remove(folder, MERGED)?;
    let Some(mut new) = Table::open(folder, NEW)? else {
        return remove(folder, NEW);
    };
    let Some(mut left) = Table::open(folder, LEFT)? else {
        return change::rename((folder, NEW), (folder, LEFT));
    };
    let mut merged = Writer::create(folder, MERGED)?;
    for table in [&mut left, &mut new] {
        table.for_each(|state| merged.add(state))?;
    }
    merged.flush()?;
    change::rename((folder, MERGED), (folder, LEFT))?;
    remove(folder, NEW)
}

/// Add `states` to the table of the remains, which is made if it is missing; full blocks are not
/// rewritten.
pub(super) fn add_left(folder: BorrowedFd<'_>, states: &[State]) -> Outcome<()> {
    if states.is_empty() {
        return Ok(());
    }
    let mut writer = if let Some(table) = Table::open(folder, LEFT)? {
        table.into_writer()?
    } else {
        remove(folder, LEFT)?;
        Writer::create(folder, LEFT)?
    };
    states.iter().try_for_each(|state| writer.add(*state))?;
    writer.flush()
}

/// Delete a file, if it exists.
fn remove(folder: BorrowedFd<'_>, name: &[u8]) -> Outcome<()> {
    match change::unlink(folder, name) {
        Err(Errno::NOENT) => Ok(()),
        done => done,
    }
}
