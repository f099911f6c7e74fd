//! The digests of files that were hashed before, in a table on the local disk.
//!
//! The table is a cache: it may be deleted at any time, and damaged parts are ignored.  It lists
//! every file in the order of the scan, so an unchanged tree is compared sequentially, without
//! lookups; and an unchanged table is not written.  After a power cut its blocks are complete or
//! have a wrong checksum: nothing is synchronised.

mod block;
mod files;
mod known;
mod listed;
mod state;
mod table;
mod writer;

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};

use huai_format::limits::DIGEST_BYTES;

use crate::scan::directory::Directory;
use files::PendingFile;
pub use files::{DigestTable, Doubt, HashedFile};
use huai_sys::call::{self, Outcome};
use huai_sys::error::{Errno, Error, Result};
use known::{EarlierTables, KnownDigest};
pub use listed::ListedDigests;
use state::{ScannedFile, State, Validity};
use writer::Writer;

/// The digests of one commit, in the order of its scan.
#[derive(Debug)]
pub struct Digests {
    folder: OwnedFd,
    path: Vec<u8>,
    known: EarlierTables,
    /// The number of states that are equal to the first ones of the last table.
    same: u64,
    /// The new table; `None` while the last table is right.
    writer: Option<Writer>,
    /// The results of this commit for files with further names, and the number of these names.
    linked: HashMap<Vec<u8>, (Option<State>, u32)>,
    /// The files of each directory of the last `look_up`.
    pending: Vec<Vec<PendingFile>>,
}

impl DigestTable for Digests {
    /// Look up digests, and return the uncertain files, for which `settle` needs results.
    fn look_up(&mut self, directories: &[&Directory]) -> Result<Vec<Doubt>> {
        self.pending.clear();
        let mut doubts = Vec::new();
        let done = self.look_up_all(directories, &mut doubts);
        done.map_err(|errno| self.failed(errno))?;
        Ok(doubts)
    }

    /// Return the digest columns, zeros for files without a result, and store the states.
    fn settle(&mut self, found: &[Option<HashedFile>]) -> Result<Vec<Vec<u8>>> {
        let pending = std::mem::take(&mut self.pending);
        let settle = |files: Vec<PendingFile>| self.settle_directory(files, found);
        let columns: Outcome<_> = pending.into_iter().map(settle).collect();
        columns.map_err(|errno| self.failed(errno))
    }
}

impl Digests {
    /// Open the digests in `folder`; those in the folders `others` are known too.
    pub fn open(folder: &[u8], others: &[Vec<u8>]) -> Result<Self> {
        let open = || {
            let handle = call::open_folder(folder)?;
            let tables = EarlierTables::open(handle.as_fd(), others)?;
            Ok(Self {
                folder: handle,
                path: folder.to_vec(),
                known: tables,
                same: 0,
                writer: None,
                linked: HashMap::new(),
                pending: Vec::new(),
            })
        };
        open().map_err(|errno| Error::new("open", folder, errno))
    }

    /// Store all files in `pending`, and append the uncertain ones to `doubts`.
    fn look_up_all(&mut self, directories: &[&Directory], doubts: &mut Vec<Doubt>) -> Outcome<()> {
        for (number, directory) in directories.iter().enumerate() {
            let mut pending = Vec::new();
            for (file, seen) in files::scanned_files(directory).enumerate() {
                let place = (number, file);
                pending.push(match self.look_up_file(&seen)? {
                    KnownDigest::Known(state) => PendingFile::Known(state),
                    answer => {
                        let if_born = answer.if_born();
                        doubts.push(Doubt { place, if_born });
                        PendingFile::Doubtful(seen.now, doubts.len() - 1)
                    }
                });
            }
            self.pending.push(pending);
        }
        Ok(())
    }

    /// Return the digest column of a directory, and store the states of its files.
    fn settle_directory(
        &mut self,
        files: Vec<PendingFile>,
        found: &[Option<HashedFile>],
    ) -> Outcome<Vec<u8>> {
        let mut column = Vec::with_capacity(files.len() * DIGEST_BYTES);
        for file in files {
            let state = file.settle(found);
            column.extend(state.map_or([0; DIGEST_BYTES], |state| state.digest()));
            if let Some(state) = state {
                self.keep(state)?;
            }
        }
        Ok(column)
    }

    /// Write the states so far; if this commit is killed, the next one finds them.
    pub fn flush(&mut self) -> Result<()> {
        let flushed = self.writer.as_mut().map_or(Ok(()), Writer::flush);
        flushed.map_err(|errno| self.failed(errno))
    }

    /// End the scan: the new table replaces all earlier ones, unless it equals the last one.
    pub fn finish(&mut self) -> Result<()> {
        let mut finish = || {
            if self.writer.is_none() && self.known.is_only(self.same)? {
                return Ok(());
            }
            self.writer()?.flush()?;
            known::replace(self.folder.as_fd())
        };
        finish().map_err(|errno| self.failed(errno))
    }

    /// Look up the digest of a file; further names of a file get that of its first one if its state is the same, else
    /// none.
    fn look_up_file(&mut self, seen: &ScannedFile) -> Outcome<KnownDigest> {
        let now = &seen.now;
        if now.links() < 2 {
            return self.known.look_up(seen);
        }
        // The first name stands for the file: it is compared with the state of the last
        // commit, and later names of this commit with it.
        let Some((first_state, unseen)) = self.linked.get_mut(now.inode()) else {
            let answer = self.known.look_up(seen)?;
            // Another name may be looked up before this one is settled.
            let first_state = match answer {
                KnownDigest::Known(state) => Some(state),
                _ => None,
            };
            let entry = (first_state, now.links() - 1);
            self.linked.insert(now.inode().to_vec(), entry);
            return Ok(answer);
        };
        let first_state = *first_state;
        *unseen = unseen.saturating_sub(1);
        if *unseen == 0 {
            self.linked.remove(now.inode());
        }
        Ok(match first_state {
            Some(state) if state.validity_for(now) == Validity::Same => {
                KnownDigest::Known(now.with(state.birth(), state.digest()))
            }
            _ => KnownDigest::Unknown,
        })
    }

    /// Store the next state: as long as the last table has the same states it is only counted, after that it is written.
    fn keep(&mut self, state: State) -> Outcome<()> {
        if state.links() > 1 {
            if let Some((found, _)) = self.linked.get_mut(state.inode()) {
                *found = Some(state);
            }
        }
        if self.writer.is_none() && self.known.has(self.same, &state)? {
            self.same += 1;
            return Ok(());
        }
        self.writer()?.add(state)
    }

    /// Return the table of this commit; makes it with the equal states if it does not exist.
    fn writer(&mut self) -> Outcome<&mut Writer> {
        if self.writer.is_none() {
            let mut writer = known::create(self.folder.as_fd())?;
            self.known.copy(self.same, &mut writer)?;
            self.writer = Some(writer);
        }
        self.writer.as_mut().ok_or(Errno::IO)
    }

    fn failed(&self, errno: Errno) -> Error {
        Error::new("use the digests in", &self.path, errno)
    }
}
