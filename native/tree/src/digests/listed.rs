//! The digests of listed files.
//!
//! Their states are in a table as long as the tree, which is read only if reading
//! the files would cost more.  New digests are added to the remains of killed commits, from which
//! the next complete scan takes them.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};

use huai_format::limits::DIGEST_BYTES;
use huai_sys::call::{self, Outcome};
use huai_sys::error::{Error, Result};

use super::files::{self, DigestTable, Doubt, HashedFile, PendingFile};
use super::known::{self, LAST, LEFT};
use super::state::{ScannedFile, State};
use super::table::Table;
use crate::scan::directory::Directory;

/// The digests of one commit by lists.
#[derive(Debug)]
pub struct ListedDigests {
    folder: OwnedFd,
    path: Vec<u8>,
    pending: Vec<Vec<PendingFile>>,
    /// The states of settled files that were hashed; those that were known are stored already.
    fresh: Vec<State>,
}

impl DigestTable for ListedDigests {
    fn look_up(&mut self, directories: &[&Directory]) -> Result<Vec<Doubt>> {
        let doubts = self.find(directories);
        doubts.map_err(|errno| self.failed(errno))
    }

    /// Return the digest columns, zeros for files without a result, and keep the new states for `finish`.
    fn settle(&mut self, found: &[Option<HashedFile>]) -> Result<Vec<Vec<u8>>> {
        let mut columns = Vec::new();
        for files in std::mem::take(&mut self.pending) {
            let mut column = Vec::new();
            for file in files {
                let is_known = matches!(file, PendingFile::Known(_));
                let state = file.settle(found);
                column.extend(state.map_or([0; DIGEST_BYTES], |state| state.digest()));
                self.fresh.extend(state.filter(|_| !is_known));
            }
            columns.push(column);
        }
        Ok(columns)
    }
}

impl ListedDigests {
    /// Open the digests in `folder`; reads nothing yet.
    pub fn open(folder: &[u8]) -> Result<Self> {
        let handle = call::open_folder(folder);
        Ok(Self {
            folder: handle.map_err(|errno| Error::new("open", folder, errno))?,
            path: folder.to_vec(),
            pending: Vec::new(),
            fresh: Vec::new(),
        })
    }

    /// Store all files in `pending`, and return the uncertain ones.
    fn find(&mut self, directories: &[&Directory]) -> Outcome<Vec<Doubt>> {
        let scanned = directories
            .iter()
            .map(|each| files::scanned_files(each).collect());
        let scanned: Vec<Vec<ScannedFile>> = scanned.collect();
        let states = self.states_of(&scanned)?;
        let mut doubts = Vec::new();
        self.pending.clear();
        for (directory, files) in scanned.into_iter().enumerate() {
            let mut pending = Vec::with_capacity(files.len());
            for (number, scanned) in files.into_iter().enumerate() {
                pending.push(match judge(&states, &scanned) {
                    known::KnownDigest::Known(state) => PendingFile::Known(state),
                    answer => {
                        let place = (directory, number);
                        let if_born = answer.if_born();
                        doubts.push(Doubt { place, if_born });
                        PendingFile::Doubtful(scanned.now, doubts.len() - 1)
                    }
                });
            }
            self.pending.push(pending);
        }
        Ok(doubts)
    }

    /// Return the stored states of these files' inodes; a table with more bytes than these files is not read.
    fn states_of(&self, seen: &[Vec<ScannedFile>]) -> Outcome<HashMap<Vec<u8>, Vec<State>>> {
        let mut by_inode: HashMap<Vec<u8>, Vec<State>> = HashMap::new();
        let mut bytes: u64 = 0;
        for seen in seen.iter().flatten() {
            bytes = bytes.saturating_add(seen.now.size());
            for state in [Some(seen.now), seen.earlier()].into_iter().flatten() {
                by_inode.entry(state.inode().to_vec()).or_default();
            }
        }
        for name in [LEFT, LAST] {
            let Some(mut table) = Table::open(self.folder.as_fd(), name)? else {
                continue;
            };
            if table.bytes() > bytes {
                continue;
            }
            table.for_each(|state| {
                if let Some(found) = by_inode.get_mut(state.inode()) {
                    found.push(state);
                }
                Ok(())
            })?;
        }
        Ok(by_inode)
    }

    /// Add the states of the files hashed since to the remains on disk, and forget them, after an error too.
    pub fn finish(&mut self) -> Result<()> {
        let outcome = known::add_left(self.folder.as_fd(), &self.fresh);
        self.fresh.clear();
        outcome.map_err(|errno| self.failed(errno))
    }

    fn failed(&self, errno: huai_sys::error::Errno) -> Error {
        Error::new("use the digests in", &self.path, errno)
    }
}

/// Return the known digest of a file, given the `known` states by inode; an earlier number of the file system counts
/// too.
fn judge(known: &HashMap<Vec<u8>, Vec<State>>, seen: &ScannedFile) -> known::KnownDigest {
    let by_one = |now: &State| {
        let earlier = known.get(now.inode()).map_or(&[][..], |all| &**all);
        known::judge(earlier, now)
    };
    match (by_one(&seen.now), seen.earlier()) {
        (known::KnownDigest::Unknown, Some(earlier)) => by_one(&earlier).on(seen.now.file_system()),
        (answer, _) => answer,
    }
}
