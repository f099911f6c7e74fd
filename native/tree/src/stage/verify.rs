//! Verifies arrived files against their metadata, which happens here only.
//!
//! A hostile sender may have made anything below the folder, but its rsync has ended: nothing
//! changes any more.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicUsize, Ordering};

use huai_format::path::split;
use huai_sys::attributes::Attributes;
use huai_sys::call::{self, FileType, Outcome, Status, Time};
use huai_sys::change;
use huai_sys::error::{Errno, Error, Result};
use huai_sys::handle::{LastDirectory, Root};
use huai_sys::stop::Stop;
use huai_sys::workers;

use crate::hashing::hash::{Blake3Digest, Reader};

const SECOND: i64 = 1_000_000_000;
/// The files that a thread takes at a time, often a whole directory.
const CHUNK: usize = 64;

/// The metadata of a file.
#[derive(Debug)]
pub struct FileMetadata {
    /// The path below the folder.
    pub path: Vec<u8>,
    /// The size in bytes.
    pub size: u64,
    /// The time in nanoseconds since the epoch.
    pub mtime: i64,
    /// The permission bits.
    pub mode: u32,
    /// The digest; `None` if size and time decide.
    pub digest: Option<Blake3Digest>,
}

/// A requested file.
#[derive(Debug)]
pub struct VerifyRequest {
    /// Its metadata.
    pub wanted: FileMetadata,
    /// The final attributes; `None` if they are set later.
    pub attributes: Option<Attributes>,
}

/// The result for a requested file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// It is a regular file with size, time and digest of the metadata.
    Arrived,
    /// It arrived, has its owner, mode and time, and can be published.
    Finished,
    /// It is missing; at most its basis is there.
    Missing,
    /// Something else is there.
    Mismatch,
}

/// The origin of a folder.
#[derive(Debug)]
pub struct Run {
    /// True if the run that wrote it was interrupted.  rsync keeps a partial file under second 0
    /// of the epoch, so that time then proves nothing.
    pub cut: bool,
    /// The inodes that were placed there as a basis, by path.
    pub placed: HashMap<Vec<u8>, u64>,
}

/// Return the positions, in order, of the `files` of more than `larger_than` bytes that exist below
/// `root` as regular files.
///
/// With any, also those of the others if they are fewer than `few`.  A file is left out if an
/// existing ancestor is not a directory.  Files of one directory should be adjacent.  A stop is an
/// error.
pub fn comparable<'a>(
    root: &[u8],
    files: impl Iterator<Item = (&'a [u8], u64)>,
    larger_than: u64,
    few: usize,
    stop: &Stop,
) -> Result<Vec<usize>> {
    let root = Root::open(root)?;
    let mut last = LastDirectory::default();
    let mut missing = None;
    let (mut present, mut others) = (Vec::new(), Vec::new());
    let is_file = |above: BorrowedFd<'_>, name: &[u8]| {
        call::status_at(above, name).is_ok_and(|status| status.kind == FileType::RegularFile)
    };
    for (position, (path, size)) in files.enumerate() {
        if stop.is_set() {
            return Err(Error::new("open", path, Errno::CANCELED));
        }
        let (parent, name) = split(path);
        if missing == Some(parent) {
            others.push(position);
            continue;
        }
        match last.open(&root, parent) {
            Ok(above) if size > larger_than && is_file(above, name) => present.push(position),
            Ok(_) => others.push(position),
            Err(Errno::NOENT) => {
                missing = Some(parent);
                others.push(position);
            }
            Err(_) => {}
        }
    }
    if !present.is_empty() && others.len() < few {
        present.append(&mut others);
        present.sort_unstable();
    }
    Ok(present)
}

/// Write all changes of the file system of the open directory `folder` to disk.
/// Opens it again, so that an error is reported to every other handle as well.
pub fn write_back(folder: u32) -> Result<()> {
    call::reopen(folder)
        .and_then(|folder| change::sync_file_system(folder.as_fd()))
        .map_err(|errno| Error::new("sync", b"", errno))
}

/// Verify `files` below the directory `folder`, and set the attributes of those that are right and
/// were hashed.  Returns a result for each, in order; a stop is an error.  Files of one directory
/// should be adjacent.
pub fn verify(
    folder: &[u8],
    files: &[VerifyRequest],
    run: &Run,
    threads: usize,
    stop: &Stop,
) -> Result<Vec<Arrival>> {
    let batch = Batch {
        root: Root::open(folder)?,
        files,
        run,
        next: AtomicUsize::new(0),
        threads,
        stop,
    };
    let threads = threads.min(files.len().div_ceil(CHUNK));
    let mut verdicts = vec![Arrival::Missing; files.len()];
    for part in workers::run(threads, || batch.work()) {
        for (begin, arrivals) in part? {
            for (verdict, arrival) in verdicts.iter_mut().skip(begin).zip(arrivals) {
                *verdict = arrival;
            }
        }
    }
    Ok(verdicts)
}

/// The state that threads share.
struct Batch<'a> {
    root: Root,
    files: &'a [VerifyRequest],
    run: &'a Run,
    /// The next file to verify.
    next: AtomicUsize,
    threads: usize,
    stop: &'a Stop,
}

/// The results of a chunk, and the number of its first file.
type Chunk = (usize, Vec<Arrival>);

impl<'a> Batch<'a> {
    /// Verify one chunk after the other, until none is left, or the first error.
    fn work(&self) -> Result<Vec<Chunk>> {
        let mut reader = Reader::default();
        let mut last = LastDirectory::default();
        let mut chunks = Vec::new();
        loop {
            let begin = self.next.fetch_add(CHUNK, Ordering::Relaxed);
            let Some(rest) = self.files.get(begin..).filter(|rest| !rest.is_empty()) else {
                return Ok(chunks);
            };
            let verify = |request| self.verify_one(request, &mut last, &mut reader);
            match rest.iter().take(CHUNK).map(verify).collect() {
                Ok(arrivals) => chunks.push((begin, arrivals)),
                Err(error) => {
                    self.next.store(self.files.len(), Ordering::Relaxed); // ends the other threads
                    return Err(error);
                }
            }
        }
    }

    /// Verify one file: `Missing` if it is not there, `Mismatch` if it may not be opened; any other error ends the
    /// batch.
    fn verify_one(
        &self,
        request: &'a VerifyRequest,
        last: &mut LastDirectory<'a>,
        reader: &mut Reader,
    ) -> Result<Arrival> {
        let file = &request.wanted;
        if self.stop.is_set() {
            return Err(Error::new("verify", &file.path, Errno::CANCELED));
        }
        let (parent, name) = split(&file.path);
        let result = last
            .open(&self.root, parent)
            .and_then(|directory| self.judge(request, directory, name, reader));
        match result {
            Ok(arrival) => Ok(arrival),
            Err(Errno::NOENT) => Ok(Arrival::Missing),
            Err(Errno::NOTDIR | Errno::LOOP | Errno::NXIO | Errno::ACCESS) => Ok(Arrival::Mismatch),
            Err(errno) => Err(Error::new("verify", &file.path, errno)),
        }
    }

    /// Compare a file with its metadata, and set the attributes of one that was hashed and is right.  A basis that
    /// was placed there is `Missing`; without a digest, size and time decide.  Only regular files are opened: opening
    /// a device may have an effect.
    fn judge(
        &self,
        request: &VerifyRequest,
        directory: BorrowedFd<'_>,
        name: &[u8],
        reader: &mut Reader,
    ) -> Outcome<Arrival> {
        let file = &request.wanted;
        let status = call::status_at(directory, name)?;
        if self.run.placed.get(&file.path) == Some(&status.inode) {
            return Ok(Arrival::Missing);
        }
        if !fits(&status, file) {
            return Ok(Arrival::Mismatch);
        }
        let Some(digest) = file.digest else {
            return Ok(if self.run.cut && status.mtime.seconds == 0 {
                Arrival::Mismatch
            } else {
                Arrival::Arrived
            });
        };
        let content = call::open_file_at(directory, name)?;
        let read = reader.hash(content.as_fd(), status.size, self.threads, self.stop)?;
        if read != digest {
            return Ok(Arrival::Mismatch);
        }
        let finished = request
            .attributes
            .is_some_and(|attributes| attributes.finish(content.as_fd(), &status));
        Ok(if finished {
            Arrival::Finished
        } else {
            Arrival::Arrived
        })
    }
}

/// Return true if type, size and time are those of the metadata.
pub(crate) fn fits(found: &Status, file: &FileMetadata) -> bool {
    found.kind == FileType::RegularFile
        && found.size == file.size
        && is_same_time(found.mtime, file.mtime)
}

/// Return true if a file may have the time `wanted`: the seconds are equal, and so are fractions, if both have one.
/// Peers before protocol 31 send whole seconds, and many lists of upstreams without huai state them.
fn is_same_time(arrived: Time, wanted: i64) -> bool {
    let nanoseconds = wanted.rem_euclid(SECOND);
    arrived.seconds == wanted.div_euclid(SECOND)
        && (arrived.nanoseconds == 0
            || nanoseconds == 0
            || i64::from(arrived.nanoseconds) == nanoseconds)
}
