//! The file of an image, written at offsets.

use std::os::fd::{AsFd, OwnedFd};

use huai_export::erofs::ImageSink;
use huai_git::error::{Error as FormatError, Result as Made};
use huai_sys::change;
use huai_sys::error::{Error, Result};

/// A private file.
#[derive(Debug)]
pub struct ImageFile {
    file: OwnedFd,
    path: Vec<u8>,
}

impl ImageFile {
    /// Open the empty file at `path` for writing.
    pub fn open(path: &[u8]) -> Result<Self> {
        let file = change::open_file(path).map_err(|errno| Error::new("open", path, errno))?;
        let path = path.to_vec();
        Ok(Self { file, path })
    }
}

impl ImageSink for ImageFile {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Made<()> {
        change::write_at(self.file.as_fd(), at, bytes)
            .map_err(|errno| FormatError::Lent(Box::new(Error::new("write", &self.path, errno))))
    }
}
