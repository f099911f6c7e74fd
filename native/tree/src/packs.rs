//! The packs of a repository, read by place; nothing is ever mapped.

use std::os::fd::{AsFd, OwnedFd};

use huai_format::error::Error as FormatError;
use huai_format::git::window::Source;

use crate::call;
use crate::error::{Errno, Error, Result};

/// A file that is read by place.  It keeps the size it had when it was opened.
#[derive(Debug)]
pub struct PackFile {
    handle: OwnedFd,
    path: Vec<u8>,
    size: u64,
}

impl PackFile {
    /// Opens the file at `path`, in a folder of our own.
    pub fn open(path: &[u8]) -> Result<Self> {
        let failed = |errno| Error {
            doing: "open",
            path: path.to_vec(),
            errno,
        };
        let handle = call::open_file(path).map_err(failed)?;
        let size = call::status(handle.as_fd()).map_err(failed)?.size;
        Ok(Self {
            handle,
            path: path.to_vec(),
            size,
        })
    }

    fn fill(&self, mut offset: u64, mut room: &mut [u8]) -> std::result::Result<(), Errno> {
        while !room.is_empty() {
            let read = call::read_at(self.handle.as_fd(), offset, room)?;
            if read == 0 {
                return Err(Errno::IO); // it was cut meanwhile
            }
            offset += read as u64;
            room = room.get_mut(read..).unwrap_or_default();
        }
        Ok(())
    }
}

impl Source for &PackFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, room: &mut [u8]) -> huai_format::error::Result<()> {
        self.fill(offset, room).map_err(|errno| {
            FormatError::Lent(Box::new(Error {
                doing: "read",
                path: self.path.clone(),
                errno,
            }))
        })
    }
}
