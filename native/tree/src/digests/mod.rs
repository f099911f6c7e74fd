//! The digests of files that were read before, in a table on the local disk.
//!
//! A cache: it may be deleted at any time, and what is damaged in it is not used.  It lists every
//! file in the order of the scan, so an unchanged tree is compared from the front to the end, and
//! nothing is looked up; and a table that would be the same is not written.  What is there after a
//! power cut is whole or has a wrong checksum: nothing is synchronised.

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
use crate::sys::call::{self, Outcome};
use crate::sys::error::{Errno, Error, Result};
use files::Asked;
pub use files::{DigestTable, Doubt, Found};
use known::{Answer, Known};
pub use listed::ListedDigests;
use state::{Seen, State, Told};
use writer::Writer;

/// The digests of one commit, in the order of its scan.
#[derive(Debug)]
pub struct Digests {
    folder: OwnedFd,
    path: Vec<u8>,
    known: Known,
    /// How many states were the next ones of the last table, from its front.
    same: u64,
    /// None as long as the last table is right.
    writer: Option<Writer>,
    /// What this commit found out about files with names to come, and how many of these.
    linked: HashMap<Vec<u8>, (Option<State>, u32)>,
    /// A list for each directory that was asked for.
    asked: Vec<Vec<Asked>>,
}

impl DigestTable for Digests {
    fn look_up(&mut self, directories: &[&Directory]) -> Result<Vec<Doubt>> {
        self.asked.clear();
        let mut doubts = Vec::new();
        let done = self.look_up_all(directories, &mut doubts);
        done.map_err(|errno| self.failed(errno))?;
        Ok(doubts)
    }

    fn settle(&mut self, found: &[Option<Found>]) -> Result<Vec<Vec<u8>>> {
        let asked = std::mem::take(&mut self.asked);
        let settle = |files: Vec<Asked>| self.settle_directory(files, found);
        let columns: Outcome<_> = asked.into_iter().map(settle).collect();
        columns.map_err(|errno| self.failed(errno))
    }
}

impl Digests {
    /// Those that are kept in `folder`.
    pub fn open(folder: &[u8]) -> Result<Self> {
        let open = || {
            let handle = call::open_folder(folder)?;
            let known = Known::open(handle.as_fd())?;
            Ok(Self {
                folder: handle,
                path: folder.to_vec(),
                known,
                same: 0,
                writer: None,
                linked: HashMap::new(),
                asked: Vec::new(),
            })
        };
        open().map_err(|errno| Error::new("open", folder, errno))
    }

    fn look_up_all(&mut self, directories: &[&Directory], doubts: &mut Vec<Doubt>) -> Outcome<()> {
        for (number, directory) in directories.iter().enumerate() {
            let mut asked = Vec::new();
            for (file, seen) in files::seen(directory).enumerate() {
                let place = (number, file);
                asked.push(match self.ask(&seen)? {
                    Answer::Known(state) => Asked::Known(state),
                    answer => {
                        let if_born = answer.if_born();
                        doubts.push(Doubt { place, if_born });
                        Asked::Doubtful(seen.now, doubts.len() - 1)
                    }
                });
            }
            self.asked.push(asked);
        }
        Ok(())
    }

    fn settle_directory(&mut self, files: Vec<Asked>, found: &[Option<Found>]) -> Outcome<Vec<u8>> {
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

    /// Writes what was found out so far; after a killed commit the next one finds it.
    pub fn flush(&mut self) -> Result<()> {
        let flushed = self.writer.as_mut().map_or(Ok(()), Writer::flush);
        flushed.map_err(|errno| self.failed(errno))
    }

    /// The scan has come to its end: what it saw is all that is known from now on.
    pub fn finish(&mut self) -> Result<()> {
        let mut finish = || {
            if self.writer.is_none() && self.known.is(self.same)? {
                return Ok(());
            }
            self.writer()?.flush()?;
            known::replace(self.folder.as_fd())
        };
        finish().map_err(|errno| self.failed(errno))
    }

    fn ask(&mut self, seen: &Seen) -> Outcome<Answer> {
        let now = &seen.now;
        if now.links() < 2 {
            return self.known.ask(seen);
        }
        // The first name that is met stands for the file: with that of the last commit it is
        // compared, and later ones of this commit with it.
        let Some((found, unseen)) = self.linked.get_mut(now.inode()) else {
            let answer = self.known.ask(seen)?;
            // Another name may be asked for before this one is settled.
            let found = match answer {
                Answer::Known(state) => Some(state),
                _ => None,
            };
            let entry = (found, now.links() - 1);
            self.linked.insert(now.inode().to_vec(), entry);
            return Ok(answer);
        };
        let found = *found;
        *unseen = unseen.saturating_sub(1);
        if *unseen == 0 {
            self.linked.remove(now.inode());
        }
        Ok(match found {
            Some(state) if state.tells(now) == Told::Same => {
                Answer::Known(now.with(state.birth(), state.digest()))
            }
            _ => Answer::Unknown,
        })
    }

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

    /// The table of this commit; it begins with what is the same.
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
