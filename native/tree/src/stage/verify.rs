//! Does what arrived fit its metadata?  The one place that decides it.
//!
//! A hostile sender may have made anything below the folder, but its rsync has ended: nobody
//! changes it any more.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicUsize, Ordering};

use huai_format::path::split;
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::hashing::hash::{Digest, Reader};
use crate::sys::attributes::Attributes;
use crate::sys::call::{self, Outcome, Status, Time};
use crate::sys::change;
use crate::sys::error::{Error, Result};
use crate::sys::handle::{LastDirectory, Root};
use crate::sys::stop::Stop;
use crate::sys::workers;

const SECOND: i64 = 1_000_000_000;
/// What one thread takes at a time: often a whole directory.
const CHUNK: usize = 64;

/// The metadata of a file.
#[derive(Debug)]
pub struct Wanted {
    /// Below the folder.
    pub path: Vec<u8>,
    /// Bytes.
    pub size: u64,
    /// Nanoseconds since the epoch.
    pub mtime: i64,
    /// Permission bits.
    pub mode: u32,
    /// None: size and time decide.
    pub digest: Option<Digest>,
}

/// A file that is asked for.
#[derive(Debug)]
pub struct Asked {
    /// Its metadata.
    pub wanted: Wanted,
    /// What it is to have when it is published; None: that is set later.
    pub attributes: Option<Attributes>,
}

/// What became of a file that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// It is a regular file with size, time and digest of the metadata.
    Arrived,
    /// The same, and it was given owner, mode and time: it can be published as it is.
    Finished,
    /// Nothing is there but, perhaps, what was laid there as the basis.
    Missing,
    /// Something else is there.
    Mismatch,
}

/// How a folder has come about.
#[derive(Debug)]
pub struct Run {
    /// The run that wrote it was interrupted.  rsync keeps a partial file under second 0 of the
    /// epoch, which is then a time that proves nothing.
    pub cut: bool,
    /// The inodes that were laid there as a basis, by path.
    pub placed: HashMap<Vec<u8>, u64>,
}

/// Whether any of `files` below `root` is there, and above all of them there are directories alone,
/// or nothing.  Files of one directory should follow each other.
pub fn may_compare<'a>(
    root: &[u8],
    files: impl Iterator<Item = &'a [u8]>,
    stop: &Stop,
) -> Result<bool> {
    let root = Root::open(root)?;
    let mut last = LastDirectory::default();
    let mut gap = Gap::default();
    let mut any = false;
    for path in files {
        if stop.is_set() {
            return Err(Error::new("open", path, Errno::CANCELED));
        }
        let (parent, name) = split(path);
        if gap.holds(parent) {
            continue;
        }
        match last.open(&root, parent) {
            Ok(_) if any => {}
            Ok(above) => {
                let found = call::status_at(above, name);
                any = found.is_ok_and(|found| found.kind == FileType::RegularFile);
            }
            Err(Errno::NOENT) => gap.find(&root, parent),
            Err(_) => return Ok(false),
        }
    }
    Ok(any)
}

/// A directory that is not there, so that nothing is below it either.
#[derive(Default)]
struct Gap<'a> {
    /// None: not known yet.
    missing: Option<&'a [u8]>,
    /// The directory above, which is there.
    above: Option<&'a [u8]>,
}

impl<'a> Gap<'a> {
    fn holds(&self, path: &[u8]) -> bool {
        let rest = self.missing.and_then(|missing| path.strip_prefix(missing));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    }

    /// Remembers the topmost at or above `path`, which is missing.
    fn find(&mut self, root: &Root, path: &'a [u8]) {
        let mut missing = path;
        let mut above = split(missing).0;
        while self.above != Some(above) && !above.is_empty() {
            if root.directory(above).err() != Some(Errno::NOENT) {
                break;
            }
            missing = above;
            above = split(missing).0;
        }
        *self = Self {
            missing: Some(missing),
            above: Some(above),
        };
    }
}

/// Writes all changes of the file system of the open directory `folder` to disk, as they are now.
/// Opens it anew: an error that is met is told to every other handle as well.
pub fn write_back(folder: u32) -> Result<()> {
    call::reopen(folder)
        .and_then(|folder| change::sync_file_system(folder.as_fd()))
        .map_err(|errno| Error::new("sync", b"", errno))
}

/// What became of each of `files` below the directory `folder`.  Files of one directory should
/// follow each other.
pub fn verify(
    folder: &[u8],
    files: &[Asked],
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

/// What the threads share.
struct Batch<'a> {
    root: Root,
    files: &'a [Asked],
    run: &'a Run,
    /// The first file that nobody has taken.
    next: AtomicUsize,
    threads: usize,
    stop: &'a Stop,
}

/// The verdicts of a chunk, and the number of its first file.
type Chunk = (usize, Vec<Arrival>);

impl<'a> Batch<'a> {
    /// One chunk after the other.
    fn work(&self) -> Result<Vec<Chunk>> {
        let mut reader = Reader::default();
        let mut last = LastDirectory::default();
        let mut chunks = Vec::new();
        loop {
            let begin = self.next.fetch_add(CHUNK, Ordering::Relaxed);
            let Some(rest) = self.files.get(begin..).filter(|rest| !rest.is_empty()) else {
                return Ok(chunks);
            };
            let look = |asked| self.look(asked, &mut last, &mut reader);
            match rest.iter().take(CHUNK).map(look).collect() {
                Ok(arrivals) => chunks.push((begin, arrivals)),
                Err(error) => {
                    self.next.store(self.files.len(), Ordering::Relaxed); // for nobody
                    return Err(error);
                }
            }
        }
    }

    fn look(
        &self,
        asked: &'a Asked,
        last: &mut LastDirectory<'a>,
        reader: &mut Reader,
    ) -> Result<Arrival> {
        let file = &asked.wanted;
        if self.stop.is_set() {
            return Err(Error::new("verify", &file.path, Errno::CANCELED));
        }
        let (parent, name) = split(&file.path);
        let found = last
            .open(&self.root, parent)
            .and_then(|directory| self.judge(asked, directory, name, reader));
        match found {
            Ok(arrival) => Ok(arrival),
            Err(Errno::NOENT) => Ok(Arrival::Missing),
            Err(Errno::NOTDIR | Errno::LOOP | Errno::NXIO | Errno::ACCESS) => Ok(Arrival::Mismatch),
            Err(errno) => Err(Error::new("verify", &file.path, errno)),
        }
    }

    /// Opens only what is a regular file: to open a device may do something.
    fn judge(
        &self,
        asked: &Asked,
        directory: BorrowedFd<'_>,
        name: &[u8],
        reader: &mut Reader,
    ) -> Outcome<Arrival> {
        let file = &asked.wanted;
        let found = call::status_at(directory, name)?;
        if self.run.placed.get(&file.path) == Some(&found.inode) {
            return Ok(Arrival::Missing);
        }
        if !fits(&found, file) {
            return Ok(Arrival::Mismatch);
        }
        let Some(digest) = file.digest else {
            return Ok(if self.run.cut && found.mtime.seconds == 0 {
                Arrival::Mismatch
            } else {
                Arrival::Arrived
            });
        };
        let content = call::open_file_at(directory, name)?;
        let read = reader.hash(content.as_fd(), found.size, self.threads, self.stop)?;
        if read != digest {
            return Ok(Arrival::Mismatch);
        }
        let finished = asked
            .attributes
            .is_some_and(|attributes| attributes.finish(content.as_fd(), &found));
        Ok(if finished {
            Arrival::Finished
        } else {
            Arrival::Arrived
        })
    }
}

pub(crate) fn fits(found: &Status, file: &Wanted) -> bool {
    found.kind == FileType::RegularFile
        && found.size == file.size
        && is_same_time(found.mtime, file.mtime)
}

/// Peers older than protocol 31 send whole seconds.
fn is_same_time(arrived: Time, wanted: i64) -> bool {
    arrived.seconds == wanted.div_euclid(SECOND)
        && (arrived.nanoseconds == 0 || i64::from(arrived.nanoseconds) == wanted.rem_euclid(SECOND))
}
