//! Compares local entries at the candidate paths with their wanted states.
//!
//! Records what it finds in the table; content is not read.

use std::borrow::Cow;

use huai_format::path::{is_within, parent, path_order};
use huai_plan::candidates::{
    Attribute, AttributeSet as Differing, Candidates, EntryKind, LocalState, Renames, Row, Stated,
    TableFull,
};
use huai_sys::attributes::{Attributes, Mode};
use huai_sys::call::Outcome;
use huai_sys::error::Errno;
use huai_sys::folders::Folders;
use huai_sys::stop::Stop;

use crate::compare::difference::{Body, differences};
use crate::compare::local::{LocalEntry, look};

/// The numbers of each owner's name: as a user, and as a group.
pub type Numbers = Vec<(Option<u32>, Option<u32>)>;

/// Return the attributes to set for a wanted entry; `numbers` has those of its table's owners, by
/// position.
pub fn attributes(stated: &Stated, numbers: &Numbers) -> Attributes {
    let of = |place: u32| numbers.get(place as usize).copied().unwrap_or_default();
    let bits = u32::from(stated.mode.bits);
    Attributes {
        user: of(stated.owner).0,
        group: of(stated.group).1,
        mode: if stated.mode.kept {
            Mode::Kept(bits)
        } else {
            Mode::Exact(bits)
        },
        mtime: stated.mtime,
    }
}

/// Return the error of the machine for a table without room.
pub(crate) fn no_memory(_: TableFull) -> Errno {
    Errno::NOMEM
}

/// A path that cannot be examined.
#[derive(Debug)]
pub struct Refused {
    /// The path.
    pub path: Vec<u8>,
    /// The error; `None` if the path is going to be moved.
    pub errno: Option<Errno>,
}

/// Examine all rows of `table` with an unknown state, and set local state and differences; ends at the first path
/// that cannot be examined, and returns it; `None` if all could.  `CANCELED` after a stop.
pub(crate) fn survey(
    folders: &mut Folders,
    table: &mut Candidates,
    (numbers, renames): (&Numbers, &Renames),
    stop: &Stop,
) -> Outcome<Option<Refused>> {
    // Nothing is below the last missing path; the rows are in path order.
    let mut missing: Option<Vec<u8>> = None;
    for place in unknown(table) {
        if stop.is_set() {
            return Err(Errno::CANCELED);
        }
        let Some(row) = table.rows().get(place).copied() else {
            continue;
        };
        let result = find_unless_within(&mut missing, folders, table.path(&row), renames);
        let judged = result.and_then(|result| {
            let differing = match &result {
                Some(result) => judge(folders, table, &row, result, (numbers, renames))?,
                None => Differing::default(),
            };
            Ok((result, differing))
        });
        let (result, differing) = match judged {
            Ok(seen) => seen,
            Err(refused) => return Ok(Some(refused)),
        };
        let local = match result {
            None => LocalState::Nothing,
            Some(LocalEntry { seen, target }) => {
                let wanted_link = row
                    .wanted
                    .filter(|wanted_link| wanted_link.kind == EntryKind::Symlink);
                let past = table.past(&row).first().copied();
                let known_targets = [wanted_link, past].map(|each| each.map(|each| each.other));
                LocalState::Something {
                    seen,
                    target: table
                        .add_text_once(&target, known_targets)
                        .map_err(no_memory)?,
                    named: false,
                }
            }
        };
        if let Some(row) = table.rows_mut().get_mut(place) {
            row.differing = differing;
        }
        table.set_local(place, local);
    }
    Ok(None)
}

/// Return the positions of unknown rows in path order, so that each directory is opened once.
fn unknown(table: &Candidates) -> Vec<usize> {
    let rows = table.rows().iter().enumerate();
    let unknown = rows.filter(|(_, row)| matches!(table.local(row), LocalState::Unknown));
    let mut sorted: Vec<(&[u8], usize)> = unknown
        .map(|(place, row)| (table.path(row), place))
        .collect();
    sorted.sort_by(|one, other| path_order(one.0, other.0));
    sorted.into_iter().map(|(_, place)| place).collect()
}

/// Examine an entry as `find` does, unless it is within the path `missing`; sets `missing` to its path
/// if nothing is there.
fn find_unless_within(
    missing: &mut Option<Vec<u8>>,
    folders: &mut Folders,
    path: &[u8],
    renames: &Renames,
) -> Result<Option<LocalEntry>, Refused> {
    let before = path_before(path, renames)?;
    if missing.as_ref().is_some_and(|top| is_within(&before, top)) {
        return Ok(None);
    }
    let result = find_at(folders, path, &before)?;
    if result.is_none() {
        *missing = Some(before.into_owned());
    }
    Ok(result)
}

/// Examine the entry that will be at `path`, at its path before `renames`; `None` if it is missing.  Refused if it is
/// going to be moved, or cannot be examined.
fn find(
    folders: &mut Folders,
    path: &[u8],
    renames: &Renames,
) -> Result<Option<LocalEntry>, Refused> {
    let before = path_before(path, renames)?;
    find_at(folders, path, &before)
}

/// Return the path before `renames`; refused if the entry is going to be moved.
fn path_before<'a>(path: &'a [u8], renames: &Renames) -> Result<Cow<'a, [u8]>, Refused> {
    renames.before(path).ok_or_else(|| Refused {
        path: path.to_vec(),
        errno: None,
    })
}

/// Examine the entry at `before`, which will be at `path`; `None` if it is missing.
fn find_at(
    folders: &mut Folders,
    path: &[u8],
    before: &[u8],
) -> Result<Option<LocalEntry>, Refused> {
    folders
        .with_permission(&[parent(before)], |folders| look(folders, before))
        .map_err(|errno| Refused {
            path: path.to_vec(),
            errno: Some(errno),
        })
}

/// Return the attributes in which an entry differs from the wanted one, its leader's inode included; none if no entry
/// is wanted.
fn judge(
    folders: &mut Folders,
    table: &Candidates,
    row: &Row,
    LocalEntry { seen, target }: &LocalEntry,
    (numbers, renames): (&Numbers, &Renames),
) -> Result<Differing, Refused> {
    let Some(wanted) = &row.wanted else {
        return Ok(Differing::default());
    };
    let body = match wanted.kind {
        EntryKind::File => Body::File(wanted.size),
        EntryKind::Directory => Body::Directory,
        EntryKind::Symlink => Body::Symlink(table.bytes(wanted.other)),
    };
    let mut differing = differences(body, &attributes(wanted, numbers), seen, target);
    if wanted.is_linked() && seen.kind == Some(EntryKind::File) {
        let leader = find(folders, table.bytes(wanted.other), renames)?;
        let is_leader = leader.is_some_and(|it| it.seen.is_inode_of(seen));
        differing.add_if(Attribute::Link, !is_leader);
    }
    Ok(differing)
}
