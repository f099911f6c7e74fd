//! What stands at the paths that may have to change, against what should.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use huai_format::path::{RelPath, parent, path_order};
use rustix::fs::FileType;
use rustix::io::Errno;

use super::{Candidates, Here, Kind, Row};
use crate::compare::difference::{Body, differences};
use crate::compare::differing::{Attribute, Attributes as Differing};
use crate::compare::local::{Found, look};
use crate::sys::call::Outcome;
use crate::sys::folders::Folders;
use crate::sys::stop::Stop;

/// Numbers of each owner's name: as a user, and as a group.
pub type Numbers = Vec<(Option<u32>, Option<u32>)>;

/// Where paths are before directories are moved, all at once.
#[derive(Debug, Default)]
pub struct Renames {
    /// The old path by the new one.
    sources: HashMap<Vec<u8>, Vec<u8>>,
    /// Old paths; nothing will be there.
    vacated: HashSet<Vec<u8>>,
}

impl Renames {
    /// Of moves, from old to new path.
    pub fn new(moves: Vec<(Vec<u8>, Vec<u8>)>) -> Self {
        let vacated = moves.iter().map(|(old, _)| old.clone()).collect();
        let sources = moves.into_iter().map(|(old, new)| (new, old)).collect();
        Self { sources, vacated }
    }

    /// The path at which now is what will be at `path`; none: nothing will be there.
    pub fn before<'a>(&self, path: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        if self.sources.is_empty() {
            return Some(path.into());
        }
        let own = RelPath::trusted(path.to_vec());
        for above in std::iter::once(path).chain(own.ancestors()) {
            if let Some(source) = self.sources.get(above) {
                let rest = &path[above.len()..];
                return Some([source, rest].concat().into());
            }
            if self.vacated.contains(above) {
                return None;
            }
        }
        Some(path.into())
    }

    /// Whether `path` will be in a directory that moves.
    pub fn arrives(&self, path: &[u8]) -> bool {
        let own = RelPath::trusted(path.to_vec());
        !self.sources.is_empty()
            && own
                .ancestors()
                .any(|above| self.sources.contains_key(above))
    }
}

/// A path that cannot be looked at.
#[derive(Debug)]
pub struct Refused {
    /// Where.
    pub path: Vec<u8>,
    /// Why; none: it is going to be moved.
    pub errno: Option<Errno>,
}

/// Looks at all of `table` that nobody looked at yet; ends at the first that cannot be.
pub(crate) fn survey(
    folders: &mut Folders,
    table: &mut Candidates,
    (numbers, renames): (&Numbers, &Renames),
    stop: &Stop,
) -> Outcome<Option<Refused>> {
    for place in unknown(table) {
        if stop.is_set() {
            return Err(Errno::CANCELED);
        }
        let Some(row) = table.rows().get(place).copied() else {
            continue;
        };
        let found = find(folders, table.path(&row), renames);
        let judged = found.and_then(|found| {
            let differing = match &found {
                Some(found) => judge(folders, table, &row, found, (numbers, renames))?,
                None => Differing::default(),
            };
            Ok((found, differing))
        });
        let (found, differing) = match judged {
            Ok(seen) => seen,
            Err(refused) => return Ok(Some(refused)),
        };
        let here = match found {
            None => Here::Nothing,
            Some(Found { seen, target }) => {
                let wanted = row.wanted.filter(|wanted| wanted.kind == Kind::Symlink);
                let past = table.past(&row).first().copied();
                let known = [wanted, past].map(|each| each.map(|each| each.other));
                Here::Something {
                    seen,
                    target: table.put_again(&target, known)?,
                    named: false,
                }
            }
        };
        if let Some(row) = table.rows_mut().get_mut(place) {
            row.differing = differing;
        }
        table.set_here(place, here);
    }
    Ok(None)
}

/// The places of these rows, in tree order: each directory is opened once.
fn unknown(table: &Candidates) -> Vec<usize> {
    let rows = table.rows().iter().enumerate();
    let unknown = rows.filter(|(_, row)| matches!(table.here(row), Here::Unknown));
    let mut found: Vec<(&[u8], usize)> = unknown
        .map(|(place, row)| (table.path(row), place))
        .collect();
    found.sort_by(|one, other| path_order(one.0, other.0));
    found.into_iter().map(|(_, place)| place).collect()
}

fn find(folders: &mut Folders, path: &[u8], renames: &Renames) -> Result<Option<Found>, Refused> {
    let refused = |errno| Refused {
        path: path.to_vec(),
        errno,
    };
    let before = renames.before(path).ok_or_else(|| refused(None))?;
    folders
        .permitted(&[parent(&before)], |folders| look(folders, &before))
        .map_err(|errno| refused(Some(errno)))
}

fn judge(
    folders: &mut Folders,
    table: &Candidates,
    row: &Row,
    Found { seen, target }: &Found,
    (numbers, renames): (&Numbers, &Renames),
) -> Result<Differing, Refused> {
    let Some(wanted) = &row.wanted else {
        return Ok(Differing::default());
    };
    let body = match wanted.kind {
        Kind::File => Body::File(wanted.size),
        Kind::Directory => Body::Directory,
        Kind::Symlink => Body::Symlink(table.bytes(wanted.other)),
    };
    let mut found = differences(body, &table.attributes(wanted, numbers), seen, target);
    if wanted.is_linked() && seen.kind == FileType::RegularFile {
        let leader = find(folders, table.bytes(wanted.other), renames)?;
        let is_leader = leader.is_some_and(|it| it.seen.is_inode_of(seen));
        found.add_if(Attribute::Link, !is_leader);
    }
    Ok(found)
}
