//! The digests of the files that a list names.
//!
//! What is known of them stands somewhere in a table as long as the tree: it is read only if reading
//! the files would be more.  What is found out is added to what killed commits left: the next whole
//! scan takes it from there.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};

use huai_format::limits::DIGEST_BYTES;

use super::files::{self, Asked, DigestTable, Doubt, Found};
use super::known::{self, LAST, LEFT};
use super::state::{Seen, State};
use super::table::Table;
use crate::scan::directory::Directory;
use crate::sys::call::{self, Outcome};
use crate::sys::error::{Error, Result};

/// Those of one commit by lists.
#[derive(Debug)]
pub struct ListedDigests {
    folder: OwnedFd,
    path: Vec<u8>,
    asked: Vec<Vec<Asked>>,
    /// What was found out.
    fresh: Vec<State>,
}

impl DigestTable for ListedDigests {
    fn look_up(&mut self, directories: &[&Directory]) -> Result<Vec<Doubt>> {
        let found = self.find(directories);
        found.map_err(|errno| self.failed(errno))
    }

    fn settle(&mut self, found: &[Option<Found>]) -> Result<Vec<Vec<u8>>> {
        let mut columns = Vec::new();
        for files in std::mem::take(&mut self.asked) {
            let mut column = Vec::new();
            for file in files {
                let state = file.settle(found);
                column.extend(state.map_or([0; DIGEST_BYTES], |state| state.digest()));
                self.fresh.extend(state);
            }
            columns.push(column);
        }
        Ok(columns)
    }
}

impl ListedDigests {
    /// Those that are kept in `folder`.
    pub fn open(folder: &[u8]) -> Result<Self> {
        let handle = call::open_folder(folder);
        Ok(Self {
            folder: handle.map_err(|errno| Error::new("open", folder, errno))?,
            path: folder.to_vec(),
            asked: Vec::new(),
            fresh: Vec::new(),
        })
    }

    fn find(&mut self, directories: &[&Directory]) -> Outcome<Vec<Doubt>> {
        let seen = directories.iter().map(|each| files::seen(each).collect());
        let seen: Vec<Vec<Seen>> = seen.collect();
        let known = self.known(&seen)?;
        let mut doubts = Vec::new();
        self.asked.clear();
        for (directory, files) in seen.into_iter().enumerate() {
            let mut asked = Vec::with_capacity(files.len());
            for (number, seen) in files.into_iter().enumerate() {
                asked.push(match judge(&known, &seen) {
                    known::Answer::Known(state) => Asked::Known(state),
                    answer => {
                        let place = (directory, number);
                        let if_born = answer.if_born();
                        doubts.push(Doubt { place, if_born });
                        Asked::Doubtful(seen.now, doubts.len() - 1)
                    }
                });
            }
            self.asked.push(asked);
        }
        Ok(doubts)
    }

    /// What tables say of these files, if that is worth its reading.
    fn known(&self, seen: &[Vec<Seen>]) -> Outcome<HashMap<Vec<u8>, Vec<State>>> {
        let mut wanted: HashMap<Vec<u8>, Vec<State>> = HashMap::new();
        let mut bytes: u64 = 0;
        for seen in seen.iter().flatten() {
            bytes = bytes.saturating_add(seen.now.size());
            for state in [Some(seen.now), seen.earlier()].into_iter().flatten() {
                wanted.entry(state.inode().to_vec()).or_default();
            }
        }
        for name in [LEFT, LAST] {
            let Some(mut table) = Table::open(self.folder.as_fd(), name)? else {
                continue;
            };
            if table.bytes() > bytes {
                continue;
            }
            table.each(|state| {
                if let Some(found) = wanted.get_mut(state.inode()) {
                    found.push(state);
                }
                Ok(())
            })?;
        }
        Ok(wanted)
    }

    /// Keeps what was found out.
    pub fn finish(&mut self) -> Result<()> {
        let kept = known::add_left(self.folder.as_fd(), &self.fresh);
        self.fresh.clear();
        kept.map_err(|errno| self.failed(errno))
    }

    fn failed(&self, errno: crate::sys::error::Errno) -> Error {
        Error::new("use the digests in", &self.path, errno)
    }
}

/// Judge a file by the states that are `known`.
fn judge(known: &HashMap<Vec<u8>, Vec<State>>, seen: &Seen) -> known::Answer {
    let by_one = |now: &State| {
        let earlier = known.get(now.inode()).map_or(&[][..], |all| &**all);
        known::judge(earlier, now)
    };
    match (by_one(&seen.now), seen.earlier()) {
        (known::Answer::Unknown, Some(earlier)) => by_one(&earlier).on(seen.now.file_system()),
        (answer, _) => answer,
    }
}
