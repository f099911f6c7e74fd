//! Packs the bytes of one object, as `inflate` unpacks them.

use zlib_rs::{Deflate, DeflateFlush, Status, compress_bound};

use crate::error::{Error, Result};
use crate::git::inflate::reserve;

const WINDOW_BITS: u8 = 15;
/// Git's own, where nobody says otherwise.
const LEVEL: i32 = 6;
const QUICK: i32 = 1;

/// Is used for one object after the other, as `Inflater` is.
pub struct Deflater(Deflate);

impl Default for Deflater {
    fn default() -> Self {
        Self(Deflate::new(LEVEL, true, WINDOW_BITS))
    }
}

impl Deflater {
    /// For what is soon dropped again: quick beats small.
    pub fn quick() -> Self {
        Self(Deflate::new(QUICK, true, WINDOW_BITS))
    }

    /// Fill `to` with one stream that holds `content`.
    pub fn deflate(&mut self, content: &[u8], to: &mut Vec<u8>) -> Result<()> {
        self.0.reset();
        let most = compress_bound(content.len());
        to.clear();
        reserve(to, most)?;
        to.resize(most, 0);
        match self.0.compress(content, to, DeflateFlush::Finish) {
            Ok(Status::StreamEnd) => {}
            Ok(_) => return Err(Error::new("a stream that zlib does not end")),
            Err(error) => return Err(Error::new(format!("zlib: {}", error.as_str()))),
        }
        to.truncate(usize::try_from(self.0.total_out()).unwrap_or(most));
        Ok(())
    }
}
