//! Writes git objects as one pack (gitformat-pack(5)).
//!
//! One pack per commit: thousands of loose objects would cost an inode and an fsync each.  Objects
//! are stored whole; deltas are left to git's maintenance.  Objects in the folder's packs
//! are not written again.  Git sees nothing of the pack until `finish` renames the index
//! into place, as its last step.

use std::collections::HashSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};

use huai_format::crc::crc32;
use huai_format::error::{Error as FormatError, Result as Made};
use huai_format::git::deflate::Deflater;
use huai_format::git::index::{self, IndexEntry};
use huai_format::git::object::{self, Kind};
use huai_format::git::oid::{Checksum, OID_BYTES, Oid};
use huai_format::git::records;
use huai_format::objects::ObjectWriter;

use super::read::Packs;
use crate::sys::call::{self, Outcome};
use crate::sys::change;
use crate::sys::error::{Errno, Error, Result};
use crate::sys::workers;

/// The bytes of objects that are compressed together.
const TOGETHER: usize = 1 << 20;
/// The bytes of a read for the checksum.
const BLOCK: usize = 1 << 20;
/// The mode of a complete pack, which no process writes to.
const COMPLETE: u32 = 0o444;
const INDEX: &[u8] = b".index";

/// A writer of the objects that a folder lacks.
pub struct PackWriter {
    folder: OwnedFd,
    path: Vec<u8>,
    /// The name of the unfinished pack; that of its index ends in `INDEX`.
    name: Vec<u8>,
    threads: usize,
    known: Packs,
    /// `None` until something was compressed.
    file: Option<OwnedFd>,
    offset: u64,
    /// The objects that were written or wait.
    own: HashSet<Oid>,
    places: Vec<IndexEntry>,
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
    /// files.  `threads` compress.
    pub fn open(folder: &[u8], name: &[u8], threads: usize) -> Made<Self> {
        let handle = call::open_folder(folder);
        Ok(Self {
            folder: handle.map_err(|errno| boxed(Error::new("open", folder, errno)))?,
            path: folder.to_vec(),
            name: name.to_vec(),
            threads,
            known: Packs::now(folder)?,
            file: None,
            offset: records::HEADER_BYTES,
            own: HashSet::new(),
            places: Vec::new(),
            waiting: Vec::new(),
            held: 0,
        })
    }

    /// Return the number of objects.
    pub fn len(&self) -> usize {
        self.own.len()
    }

    /// Return true if there are no objects.
    pub fn is_empty(&self) -> bool {
        self.own.is_empty()
    }

    /// Make the pack durable and visible; returns its name without a suffix, or `None` if it is
    /// empty.
    pub fn finish(&mut self) -> Made<Option<Vec<u8>>> {
        if self.is_empty() {
            return Ok(None);
        }
        self.compress()?;
        let sealed = self.seal();
        let checksum = sealed.map_err(|errno| self.failed(errno))?;
        let index = index::encode(std::mem::take(&mut self.places), &checksum)?;
        let outcome = self.show(&checksum, &index);
        outcome.map(Some).map_err(|errno| self.failed(errno))
    }

    /// Drop everything; may be called at any time.
    pub fn abort(&mut self) -> Result<()> {
        self.file = None;
        for name in [&self.name, &self.index_name()] {
            match change::unlink(self.folder.as_fd(), name) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(Error::new("remove", &self.path, errno)),
            }
        }
        Ok(())
    }

    /// Write the waiting objects.
    fn compress(&mut self) -> Made<()> {
        let waiting = std::mem::take(&mut self.waiting);
        self.held = 0;
        let mut bytes = Vec::new();
        for (object, record) in waiting.iter().zip(compressed(&waiting, self.threads)?) {
            self.places.push(IndexEntry {
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

    /// Return the unfinished pack; its header counts nothing yet.
    fn file(&mut self) -> Outcome<BorrowedFd<'_>> {
        if self.file.is_none() {
            let file = change::make_file(self.folder.as_fd(), &self.name)?;
            let file = self.file.insert(file);
            change::write(file.as_fd(), &records::header(0))?;
        }
        self.file.as_ref().map(AsFd::as_fd).ok_or(Errno::BADF)
    }

    /// Set the count in the header, and append the checksum of everything.
    fn seal(&mut self) -> Outcome<[u8; OID_BYTES]> {
        let objects = u32::try_from(self.places.len()).map_err(|_| Errno::FBIG)?;
        let end = self.offset;
        let file = call::open_file_at(self.folder.as_fd(), &self.name)?;
        let mut checksum = Checksum::default();
        let header = records::header(objects);
        checksum.update(&header);
        let mut at = header.len() as u64;
        let mut block = vec![0; BLOCK];
        while at < end {
            let left = usize::try_from(end - at).unwrap_or(BLOCK).min(BLOCK);
            let block = &mut block[..left];
            call::read_all_at(file.as_fd(), at, block)?;
            checksum.update(block);
            at += left as u64;
        }
        let checksum = checksum.finish();
        let pack = self.file()?;
        change::write_at(pack, 0, &header)?;
        change::write_at(pack, end, &checksum)?;
        change::sync(pack)?;
        Ok(checksum)
    }

    /// Rename the pack and then, as the last step, its index.  A pack is named after its bytes,
    /// so it can only replace an equal one.
    fn show(&mut self, checksum: &[u8; OID_BYTES], index: &[u8]) -> Outcome<Vec<u8>> {
        let folder = self.folder.as_fd();
        let index_name = self.index_name();
        let file = change::make_file(folder, &index_name)?;
        change::write(file.as_fd(), index)?;
        change::sync(file.as_fd())?;
        change::set_mode(file.as_fd(), COMPLETE)?;
        if let Some(pack) = self.file.take() {
            change::set_mode(pack.as_fd(), COMPLETE)?;
        }
        let stem = format!("pack-{}", Oid::new(*checksum)).into_bytes();
        let [pack, index] = [&b".pack"[..], b".idx"].map(|suffix| [&stem, suffix].concat());
        change::rename((folder, &self.name), (folder, &pack))?;
        change::rename((folder, &index_name), (folder, &index))?;
        change::sync(folder)?;
        Ok(stem)
    }

    fn index_name(&self) -> Vec<u8> {
        [&self.name, INDEX].concat()
    }

    fn failed(&self, errno: Errno) -> FormatError {
        boxed(Error::new("write a pack in", &self.path, errno))
    }
}

impl ObjectWriter for PackWriter {
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
            self.compress()?;
        }
        Ok(oid)
    }
}

/// Return the records of objects, in order.
fn compressed(objects: &[Object], threads: usize) -> Made<Vec<Vec<u8>>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut deflater = Deflater::default();
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

fn boxed(error: Error) -> FormatError {
    FormatError::Lent(Box::new(error))
}
