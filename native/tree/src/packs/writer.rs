//! Writes git objects as one pack (gitformat-pack(5)).
//!
//! One pack per commit: thousands of loose objects would cost an inode and an fsync each.  Objects
//! are stored whole; deltas are left to git's maintenance.  Objects in known packs
//! are not written again.  Git sees nothing of the pack until `finish` renames the index
//! into place, as its last step.

use std::collections::HashSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};

use huai_format::snapshots::ObjectWriter;
use huai_git::crc::crc32;
use huai_git::deflate::Deflater;
use huai_git::error::{Error as FormatError, Result as Made};
use huai_git::index::{self, IndexEntry};
use huai_git::object::{self, Kind};
use huai_git::oid::Oid;
use huai_git::records;
use huai_sys::call::{self, Outcome};
use huai_sys::change;
use huai_sys::error::{Errno, Error, Result};
use huai_sys::workers;

use super::finish::{Unfinished, index_name};
use super::read::{Packs, boxed};

/// The bytes of objects that are compressed together.
const TOGETHER: usize = 1 << 20;

/// A writer of the objects that a folder lacks.
pub struct PackWriter {
    folder: OwnedFd,
    path: Vec<u8>,
    /// The name of the unfinished pack.
    name: Vec<u8>,
    threads: usize,
    known: Packs,
    /// `None` until something was compressed.
    file: Option<OwnedFd>,
    offset: u64,
    /// The objects that were written or wait.
    own: HashSet<Oid>,
    entries: Vec<IndexEntry>,
    waiting: Vec<Object>,
    /// The bytes of waiting objects.
    held: usize,
}

struct Object {
    oid: Oid,
    kind: Kind,
    content: Vec<u8>,
}

impl Object {
    /// Return the object as a record of a pack.
    fn record(&self, deflater: &mut Deflater) -> Made<Vec<u8>> {
        let mut record = Vec::new();
        let form = object::PackedForm::Whole(self.kind);
        object::put_header(form, self.content.len() as u64, &mut record);
        let mut data = Vec::new();
        deflater.deflate(&self.content, &mut data)?;
        record.extend_from_slice(&data);
        Ok(record)
    }
}

impl PackWriter {
    /// Write into `folder`, at first under `name`, which must not end in .pack: git reads such
    /// files.  Objects in the packs of the folder `known` are left out; `threads` compress.
    pub fn open(folder: &[u8], known: &[u8], name: &[u8], threads: usize) -> Made<Self> {
        let handle = call::open_folder(folder);
        Ok(Self {
            folder: handle.map_err(|errno| boxed(Error::new("open", folder, errno)))?,
            path: folder.to_vec(),
            name: name.to_vec(),
            threads,
            known: Packs::open_all(known)?,
            file: None,
            offset: records::HEADER_BYTES,
            own: HashSet::new(),
            entries: Vec::new(),
            waiting: Vec::new(),
            held: 0,
        })
    }

    /// Return the number of objects so far.
    pub fn len(&self) -> usize {
        self.own.len()
    }

    /// True if there are no objects so far.
    pub fn is_empty(&self) -> bool {
        self.own.is_empty()
    }

    /// Make the pack durable and visible; returns its name without a suffix, or `None` if it is
    /// empty.
    pub fn finish(&mut self) -> Made<Option<Vec<u8>>> {
        if self.is_empty() {
            return Ok(None);
        }
        self.write_waiting()?;
        let entries = std::mem::take(&mut self.entries);
        let failed = |errno| self.failed(errno);
        let file = self.file.as_ref().ok_or(Errno::BADF).map_err(failed)?;
        let pack = Unfinished {
            folder: self.folder.as_fd(),
            name: &self.name,
            file: file.as_fd(),
        };
        let checksum = pack.seal(entries.len(), self.offset).map_err(failed)?;
        let index = index::encode(entries, &checksum)?;
        let (stem, _) = pack.publish(&checksum, &index).map_err(failed)?;
        self.file = None;
        Ok(Some(stem))
    }

    /// Remove the unfinished files; may be called at any time.
    pub fn abort(&mut self) -> Result<()> {
        self.file = None;
        for name in [&self.name, &index_name(&self.name)] {
            match change::unlink(self.folder.as_fd(), name) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(Error::new("remove", &self.path, errno)),
            }
        }
        Ok(())
    }

    /// Compress the waiting objects, and write their records.
    fn write_waiting(&mut self) -> Made<()> {
        let waiting = std::mem::take(&mut self.waiting);
        self.held = 0;
        let mut bytes = Vec::new();
        // Maintenance packs again what later commits add.
        let make = if self.known.is_empty() {
            Deflater::default
        } else {
            Deflater::quick
        };
        for (object, record) in waiting
            .iter()
            .zip(compressed(&waiting, self.threads, make)?)
        {
            self.entries.push(IndexEntry {
                oid: object.oid,
                offset: self.offset,
                crc: crc32(&record),
            });
            self.offset += record.len() as u64;
            bytes.extend_from_slice(&record);
        }
        let written = self.file().and_then(|file| change::write(file, &bytes));
        written.map_err(|errno| self.failed(errno))
    }

    /// Return the unfinished pack, made if it does not exist; its header counts nothing yet.
    fn file(&mut self) -> Outcome<BorrowedFd<'_>> {
        if self.file.is_none() {
            let file = change::make_file(self.folder.as_fd(), &self.name)?;
            let file = self.file.insert(file);
            change::write(file.as_fd(), &records::header(0))?;
        }
        self.file.as_ref().map(AsFd::as_fd).ok_or(Errno::BADF)
    }

    fn failed(&self, errno: Errno) -> FormatError {
        boxed(Error::new("write a pack in", &self.path, errno))
    }
}

impl ObjectWriter for PackWriter {
    /// Write an object, unless a known pack or this one has it; returns its id.
    fn write(&mut self, kind: Kind, content: &[u8]) -> Made<Oid> {
        let oid = Oid::of_own(kind, content);
        if self.known.find_in_known(&oid)?.is_some() || !self.own.insert(oid) {
            return Ok(oid);
        }
        self.held += content.len();
        self.waiting.push(Object {
            oid,
            kind,
            content: content.to_vec(),
        });
        if self.held >= TOGETHER {
            self.write_waiting()?;
        }
        Ok(oid)
    }
}

/// Return the records of objects, in order; each thread calls `make`.
fn compressed(objects: &[Object], threads: usize, make: fn() -> Deflater) -> Made<Vec<Vec<u8>>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut deflater = make();
        let mut records = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(object) = objects.get(number) else {
                return records;
            };
            records.push((number, object.record(&mut deflater)));
        }
    };
    let records = workers::run(threads.min(objects.len()), work);
    let mut records: Vec<_> = records.into_iter().flatten().collect();
    records.sort_unstable_by_key(|(number, _)| *number);
    records.into_iter().map(|(_, record)| record).collect()
}
