//! Stages the files of a bundle (FORMAT.md, "Bundles") while it arrives.
//!
//! A file is proved before it is written, and gets its time last: a killed run leaves nothing
//! that looks complete.

use std::os::fd::AsFd;

use huai_format::content::bundle::Head;
use huai_git::cursor::Cursor;
use huai_git::error as format;
use huai_sys::attributes::time_of;
use huai_sys::change;
use huai_sys::error::{Errno, Error, Result};

use super::copy::{New, Targets};
use super::verify::VerifyRequest;
use crate::hashing::hash::Blake3Digest;

/// The result for a requested file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BundleArrival {
    /// It arrived with size, time and content of the metadata.
    Arrived,
    /// It has owner and mode too, and can be published.
    Finished,
    /// The server has no such file, or another version of it.
    Missing,
    /// It has another size, or, without a digest, another time.
    Mismatch,
    /// It has the right size and wrong content.
    Wrong,
    /// The server may not read it.
    Denied,
    /// The bundle ended before, or the file is too large for one.
    Unreached,
}

/// The files of one run, in the order of the requests.
#[derive(Debug)]
pub struct BundleWriter {
    files: Vec<VerifyRequest>,
    targets: Targets,
    arrivals: Vec<BundleArrival>,
    /// The start of a record whose rest has not arrived.
    pending: Vec<u8>,
}

impl BundleWriter {
    /// Write to the same paths below `folder`, an open directory of this process to which no
    /// other user writes.
    pub fn new(files: Vec<VerifyRequest>, folder: u32) -> Result<Self> {
        let targets = Targets::below(folder).map_err(|errno| Error::new("open", b"", errno))?;
        Ok(Self {
            arrivals: Vec::with_capacity(files.len()),
            files,
            targets,
            pending: Vec::new(),
        })
    }

    /// Return the results so far, in the order of the files.
    pub fn arrivals(&self) -> &[BundleArrival] {
        &self.arrivals
    }

    /// Begin another response, to a request for the files without a result; drops an incomplete
    /// record.
    pub fn begin(&mut self) {
        self.pending.clear();
    }

    /// Take the next bytes of the response, and stage each file that is complete.  Fails for a
    /// malformed response, and if a file cannot be written here.
    pub fn write(&mut self, data: &[u8]) -> format::Result<()> {
        let mut pending = std::mem::take(&mut self.pending);
        pending.extend_from_slice(data);
        let mut cursor = Cursor::new(&pending);
        while let Some((head, content)) = Head::read_from(&mut cursor)? {
            let Some(file) = self.files.get(self.arrivals.len()) else {
                return Err(format::Error::new("a bundle of more files than requested"));
            };
            let arrival = match head {
                Head::File { mtime, .. } => stage(&mut self.targets, file, mtime, content)
                    .map_err(|errno| Error::new("write", &file.wanted.path, errno))
                    .map_err(|error| format::Error::Lent(Box::new(error)))?,
                // The next commit names it.
                Head::Missing | Head::Changed => BundleArrival::Missing,
                Head::Unreadable => BundleArrival::Denied,
                Head::Large => BundleArrival::Unreached,
            };
            self.arrivals.push(arrival);
        }
        let rest = cursor.rest().len();
        pending.drain(..pending.len() - rest);
        self.pending = pending;
        Ok(())
    }
}

/// Write one file, if it is the wanted one, with its time, and owner and mode if these are given and allowed; an
/// error is that of this machine's disk.
fn stage(
    targets: &mut Targets,
    file: &VerifyRequest,
    mtime: i64,
    content: &[u8],
) -> std::result::Result<BundleArrival, Errno> {
    let expected = &file.wanted;
    let is_other = expected.digest.is_none() && mtime != expected.mtime;
    if content.len() as u64 != expected.size || is_other {
        return Ok(BundleArrival::Mismatch);
    }
    let digest = expected.digest.unwrap_or_default();
    if expected.digest.is_some() && Blake3Digest::from(blake3::hash(content)) != digest {
        return Ok(BundleArrival::Wrong);
    }
    let target = targets.make(&expected.path, expected.mode)?;
    change::write_at(target.as_fd(), 0, content)?;
    let new = New::of(file);
    let finished = new.finish(target.as_fd(), targets);
    change::set_mtime(target.as_fd(), time_of(expected.mtime))?;
    Ok(if finished {
        BundleArrival::Finished
    } else {
        BundleArrival::Arrived
    })
}
