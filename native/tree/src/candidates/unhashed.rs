//! The digests of local files of which only the content can tell whether it is the wanted one.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use huai_format::path::split;
use rustix::io::Errno;

use super::Candidates;
use super::survey::Renames;
use crate::hashing::hash::{Digest, Reader};
use crate::sys::call::Outcome;
use crate::sys::error::{Error, Result, is_shortage};
use crate::sys::folders::Folders;
use crate::sys::regular::open_regular_at;
use crate::sys::stop::Stop;
use crate::sys::workers;

/// How files are read.
#[derive(Debug, Clone, Copy)]
pub struct Hashing<'a> {
    /// What stands for the digest of a file that cannot be read.
    pub damaged: &'a [u8],
    /// How many files are read at a time; as many threads hash a large one.
    pub threads: usize,
}

/// A row, and what was read; none: it cannot be.
type Hashed = (usize, Option<Digest>);

/// Reads each such file, where it is before `renames`, and puts its digest into `table`.
///
/// What ended it, if anything did: a disk that fails, so that every other file would fail as well.
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
    put(table, parts.into_iter().flatten(), hashing.damaged)?;
    Ok(None)
}

fn put(table: &mut Candidates, found: impl Iterator<Item = Hashed>, damaged: &[u8]) -> Outcome<()> {
    let damaged = table.put(damaged)?;
    for (place, digest) in found {
        let wanted = table.rows().get(place).and_then(|row| row.wanted);
        let digest = match digest {
            Some(digest) => table.put_again(&digest, [wanted.map(|wanted| wanted.digest), None])?,
            None => damaged,
        };
        if let Some(row) = table.rows_mut().get_mut(place) {
            row.digest = digest;
        }
    }
    Ok(())
}

/// What the threads share.
struct Work<'a> {
    folders: Mutex<&'a mut Folders>,
    table: &'a Candidates,
    renames: &'a Renames,
    places: &'a [usize],
    /// The first of `places` that nobody has taken.
    next: AtomicUsize,
    threads: usize,
    stop: &'a Stop,
}

impl Work<'_> {
    /// One file after the other.
    fn run(&self) -> Result<Vec<Hashed>> {
        let mut reader = Reader::default();
        let mut found = Vec::new();
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(place) = self.places.get(number).copied() else {
                return Ok(found);
            };
            match self.read(place, &mut reader) {
                Ok(digest) => found.push((place, digest)),
                Err(error) => {
                    self.next.store(self.places.len(), Ordering::Relaxed); // for nobody
                    return Err(error);
                }
            }
        }
    }

    fn read(&self, place: usize, reader: &mut Reader) -> Result<Option<Digest>> {
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

    /// The regular file at `path`, and its size.
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
