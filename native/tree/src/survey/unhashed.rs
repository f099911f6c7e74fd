//! Hashes the local files whose content has to be read to be compared.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use huai_format::path::split;
use huai_plan::candidates::{Candidates, Renames};
use huai_sys::call::Outcome;
use huai_sys::error::{Errno, Error, Result, is_shortage};
use huai_sys::folders::Folders;
use huai_sys::regular::open_regular_at;
use huai_sys::stop::Stop;
use huai_sys::workers;

use super::local::no_memory;
use crate::hashing::hash::{Blake3Digest, Reader};

/// The parameters of hashing.
#[derive(Debug, Clone, Copy)]
pub struct Hashing<'a> {
    /// The digest that is set for an unreadable file.
    pub damaged: &'a [u8],
    /// The number of threads: for different files, or for one large file.
    pub threads: usize,
}

/// A row, and its digest; `None` if unreadable.
type Hashed = (usize, Option<Blake3Digest>);

/// Hash each of the `unhashed` files at its path before `renames`, and set its digest in `table`.
///
/// Returns the error that ended it, if any: a stop, or a failing disk, on which all other files
/// would fail.  Then no digest is set.
pub(crate) fn hash(
    folders: &mut Folders,
    table: &mut Candidates,
    renames: &Renames,
    hashing: Hashing<'_>,
    stop: &Stop,
) -> Outcome<Option<Error>> {
    let places: Vec<usize> = table.unhashed().collect();
    let work = Work {
        folders: Mutex::new(folders),
        table: &*table,
        renames,
        places: &places,
        next: AtomicUsize::new(0),
        threads: hashing.threads,
        stop,
    };
    let parts = workers::run(hashing.threads.min(places.len()), || work.run());
    let parts = match parts.into_iter().collect::<Result<Vec<_>>>() {
        Ok(parts) => parts,
        Err(failure) => return Ok(Some(failure)),
    };
    set_digests(table, parts.into_iter().flatten(), hashing.damaged)?;
    Ok(None)
}

/// Set the digests of hashed rows; unreadable files get `damaged`.
fn set_digests(
    table: &mut Candidates,
    hashed: impl Iterator<Item = Hashed>,
    damaged: &[u8],
) -> Outcome<()> {
    let damaged = table.add_text(damaged).map_err(no_memory)?;
    for (place, digest) in hashed {
        let state = table.rows().get(place).and_then(|row| row.wanted);
        let digest = match digest {
            Some(digest) => table
                .add_text_once(&digest, [state.map(|state| state.digest), None])
                .map_err(no_memory)?,
            None => damaged,
        };
        if let Some(row) = table.rows_mut().get_mut(place) {
            row.digest = digest;
        }
    }
    Ok(())
}

/// The state that threads share.
struct Work<'a> {
    folders: Mutex<&'a mut Folders>,
    table: &'a Candidates,
    renames: &'a Renames,
    places: &'a [usize],
    /// The next of `places` to hash.
    next: AtomicUsize,
    threads: usize,
    stop: &'a Stop,
}

impl Work<'_> {
    /// Hash one file after the other, until none is left, or the first error.
    fn run(&self) -> Result<Vec<Hashed>> {
        let mut reader = Reader::default();
        let mut hashed = Vec::new();
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(place) = self.places.get(number).copied() else {
                return Ok(hashed);
            };
            match self.read(place, &mut reader) {
                Ok(digest) => hashed.push((place, digest)),
                Err(error) => {
                    self.next.store(self.places.len(), Ordering::Relaxed); // ends the other threads
                    return Err(error);
                }
            }
        }
    }

    /// Hash the file of the row at `place`, at its path before the renames; `None` if it is missing or unreadable.  A
    /// stop, a shortage, or `IO` on opening is an error, which ends all hashing.
    fn read(&self, place: usize, reader: &mut Reader) -> Result<Option<Blake3Digest>> {
        let path = self.table.path(&self.table.rows()[place]);
        let Some(before) = self.renames.before(path) else {
            return Ok(None);
        };
        let (file, size) = match self.open(&before) {
            Ok(opened) => opened,
            Err(errno) if errno == Errno::IO || is_shortage(errno) => {
                return Err(Error::new("open", path, errno));
            }
            Err(_) => return Ok(None),
        };
        let digest = reader.hash(file.as_fd(), size, self.threads, self.stop);
        if self.stop.is_set() {
            return Err(Error::new("hash", path, Errno::CANCELED));
        }
        match digest {
            Err(errno) if is_shortage(errno) => Err(Error::new("hash", path, errno)),
            digest => Ok(digest.ok()),
        }
    }

    /// Open the regular file at `path`; returns its size too; `INVAL` for another type.
    fn open(&self, path: &[u8]) -> Outcome<(OwnedFd, u64)> {
        let (above, name) = split(path);
        let directory = {
            let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
            folders.open(above)?
        };
        let opened = open_regular_at(directory.as_fd(), name)?;
        let (file, status) = opened.ok_or(Errno::INVAL)?;
        Ok((file, status.size))
    }
}
