//! What earlier commits knew: the table of the last one, and what killed ones left.

use std::os::fd::BorrowedFd;

use huai_format::entry::Digest;

use super::state::{Seen, State, Told};
use super::table::Table;
use super::writer::Writer;
use crate::sys::call::Outcome;
use crate::sys::change;
use crate::sys::error::Errno;

/// The table of the last commit, in the order of its scan.
pub(super) const LAST: &[u8] = b"digests";
/// The one that is being written, or was when its commit was killed.
const NEW: &[u8] = b"digests.new";
/// Of commits by lists, and of those that were killed, in any order.
pub(super) const LEFT: &[u8] = b"digests.left";
/// Two of them that are put together.
const MERGED: &[u8] = b"digests.merged";

/// What is known of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// This, with its digest.
    Known(State),
    /// The digest of this, if the file has the same time of birth.
    IfBornThen(State),
    /// Nothing.
    Unknown,
}

impl Answer {
    /// The same of a file on a file system with another number.
    pub(super) fn on(self, file_system: u64) -> Self {
        match self {
            Self::Known(state) => Self::Known(state.on(file_system)),
            other => other,
        }
    }

    /// The file's digest, if this is its time of birth.
    pub(super) fn if_born(self) -> Option<(i64, Digest)> {
        match self {
            Self::IfBornThen(state) => Some((state.birth()?, state.digest())),
            _ => None,
        }
    }
}

/// The earlier tables, and how far the last one agrees with what comes now.
#[derive(Debug)]
pub(super) struct Known {
    last: Option<Table>,
    left: Option<Table>,
    /// Where the last table goes on.
    next: u64,
}

impl Known {
    pub(super) fn open(folder: BorrowedFd<'_>) -> Outcome<Self> {
        keep_left(folder)?;
        Ok(Self {
            last: Table::open(folder, LAST)?,
            left: Table::open(folder, LEFT)?,
            next: 0,
        })
    }

    /// What is known of a file; they come in the order of the scan.
    pub(super) fn ask(&mut self, seen: &Seen) -> Outcome<Answer> {
        match (self.ask_one(&seen.now)?, seen.earlier()) {
            (Answer::Unknown, Some(earlier)) => {
                let answer = self.ask_one(&earlier)?;
                Ok(answer.on(seen.now.file_system()))
            }
            (answer, _) => Ok(answer),
        }
    }

    fn ask_one(&mut self, now: &State) -> Outcome<Answer> {
        if let Some(last) = &mut self.last {
            let next = last.at(self.next)?;
            if let Some(state) = next.filter(|state| state.inode() == now.inode()) {
                // Of a file with several names this may not be the first.
                if state.links() == 1 || state.tells(now) == Told::Same {
                    self.next += 1;
                    return self.ask_left(state, now);
                }
            }
        }
        if let Some((place, found)) = find(&mut self.last, now)? {
            self.next = place + 1;
            return self.ask_left(found, now);
        }
        let left = find(&mut self.left, now)?;
        Ok(left.map_or(Answer::Unknown, |(_, found)| answer(&found, now)))
    }

    /// What is known of a file, of which the last table has `state`.
    fn ask_left(&mut self, state: State, now: &State) -> Outcome<Answer> {
        if state.tells(now) == Told::Same {
            return Ok(answer(&state, now));
        }
        let left = find(&mut self.left, now)?;
        let earlier: Vec<_> = left.into_iter().map(|(_, found)| found).collect();
        Ok(match judge(&earlier, now) {
            Answer::Unknown => answer(&state, now),
            found => found,
        })
    }

    /// Whether exactly this state stands at a place of the last table.
    pub(super) fn has(&mut self, place: u64, state: &State) -> Outcome<bool> {
        match &mut self.last {
            Some(last) => Ok(last.at(place)?.as_ref() == Some(state)),
            None => Ok(false),
        }
    }

    /// So many states of the last table, from its front.
    pub(super) fn copy(&mut self, count: u64, to: &mut Writer) -> Outcome<()> {
        for place in 0..count {
            let state = self.last.as_mut().map_or(Ok(None), |last| last.at(place))?;
            to.add(state.ok_or(Errno::IO)?)?;
        }
        Ok(())
    }

    /// Whether the last table is `count` states, and there is nothing else.
    pub(super) fn is(&mut self, count: u64) -> Outcome<bool> {
        match (&mut self.last, &self.left) {
            (Some(last), None) => last.ends(count),
            _ => Ok(false),
        }
    }
}

/// The state in a table that tells most of a file, and its place: the same one, or the first with
/// its inode.
fn find(table: &mut Option<Table>, now: &State) -> Outcome<Option<(u64, State)>> {
    let mut first = None;
    let Some(table) = table else { return Ok(None) };
    for place in table.places(now.key())? {
        if let Some(state) = table.at(place)?.filter(|it| it.inode() == now.inode()) {
            if state.tells(now) == Told::Same {
                return Ok(Some((place, state)));
            }
            first = first.or(Some((place, state)));
        }
    }
    Ok(first)
}

/// What earlier states of the same inode say of it now.
pub(super) fn judge(earlier: &[State], now: &State) -> Answer {
    let mut best = Answer::Unknown;
    for state in earlier {
        match answer(state, now) {
            known @ Answer::Known(_) => return known,
            Answer::Unknown => {}
            other => best = other,
        }
    }
    best
}

/// What a state says of the same inode now.
fn answer(state: &State, now: &State) -> Answer {
    match state.tells(now) {
        Told::Same => Answer::Known(now.with(state.birth(), state.digest())),
        Told::IfBornThen => Answer::IfBornThen(*state),
        Told::Nothing => Answer::Unknown,
    }
}

/// Begins the table of this commit.
pub(super) fn create(folder: BorrowedFd<'_>) -> Outcome<Writer> {
    Writer::create(folder, NEW)
}

/// The table of this commit takes the place of all others.
pub(super) fn replace(folder: BorrowedFd<'_>) -> Outcome<()> {
    change::rename((folder, NEW), (folder, LAST))?;
    remove(folder, LEFT)
}

/// Takes what a killed commit wrote to what others before it left.
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
        table.each(|state| merged.add(state))?;
    }
    merged.flush()?;
    change::rename((folder, MERGED), (folder, LEFT))?;
    remove(folder, NEW)
}

/// Adds to what is left; blocks that are full stay as they are.
pub(super) fn add_left(folder: BorrowedFd<'_>, states: &[State]) -> Outcome<()> {
    if states.is_empty() {
        return Ok(());
    }
    let mut writer = if let Some(table) = Table::open(folder, LEFT)? {
        table.go_on()?
    } else {
        remove(folder, LEFT)?;
        Writer::create(folder, LEFT)?
    };
    states.iter().try_for_each(|state| writer.add(*state))?;
    writer.flush()
}

fn remove(folder: BorrowedFd<'_>, name: &[u8]) -> Outcome<()> {
    match change::unlink(folder, name) {
        Err(Errno::NOENT) => Ok(()),
        done => done,
    }
}
