//! Compresses objects; the opposite of `inflate`.

use zlib_rs::{Deflate, DeflateFlush, Status, compress_bound};

use crate::bug::fit;
use crate::error::{Error, Result};
use crate::inflate::reserve;

const WINDOW_BITS: u8 = 15;
/// Git's default level.
const LEVEL: i32 = 6;
/// Half the time of git's default for texts that are 6 % larger; level 1 makes them 60 % larger.
const QUICK: i32 = 2;
const STORED: i32 = 0;
/// The number of bytes that are sampled for randomness.
const SAMPLE: usize = 256;
/// So many random bytes have 162 values, seldom less than 140; text has less than 100.
const RANDOM_VALUES: usize = 140;

/// A compressor that is reused for many objects, like `Inflater`.
pub struct Deflater {
    usual: Deflate,
    stored: Deflate,
}

impl Default for Deflater {
    fn default() -> Self {
        Self::new(LEVEL)
    }
}

impl Deflater {
    /// Make a compressor for objects that are soon dropped or packed again: quick, with a larger
    /// result.
    pub fn quick() -> Self {
        Self::new(QUICK)
    }

    fn new(level: i32) -> Self {
        Self {
            usual: Deflate::new(level, true, WINDOW_BITS),
            stored: Deflate::new(STORED, true, WINDOW_BITS),
        }
    }

    /// Replace `to` with `content` as one zlib stream; fails if memory is short.
    ///
    /// Digests, most of the bytes of many repositories, cannot be compressed, so content that looks
    /// random is stored.
    pub fn deflate(&mut self, content: &[u8], to: &mut Vec<u8>) -> Result<()> {
        let deflate = if looks_random(content) {
            &mut self.stored
        } else {
            &mut self.usual
        };
        deflate.reset();
        let most = compress_bound(content.len());
        to.clear();
        reserve(to, most)?;
        to.resize(most, 0);
        match deflate.compress(content, to, DeflateFlush::Finish) {
            Ok(Status::StreamEnd) => {}
            Ok(_) => return Err(Error::new("a stream that zlib does not end")),
            Err(error) => return Err(Error::new(format!("zlib: {}", error.as_str()))),
        }
        to.truncate(fit(deflate.total_out()));
        Ok(())
    }
}

/// Return true if bytes sampled all over the content have as many values as random ones; false for
/// less than `SAMPLE` bytes.
fn looks_random(content: &[u8]) -> bool {
    let step = content.len() / SAMPLE;
    if step == 0 {
        return false;
    }
    let mut is_used = [false; 256];
    for byte in content.iter().step_by(step).take(SAMPLE) {
        if let Some(value) = is_used.get_mut(usize::from(*byte)) {
            *value = true;
        }
    }
    is_used.iter().filter(|value| **value).count() >= RANDOM_VALUES
}
