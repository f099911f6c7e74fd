//! Applies a git delta to its base (gitformat-pack(5), "Deltified representation").
//!
//! Rule: memory is bounded by the announced, limited size of the result.

use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::inflate::reserve;
use crate::object::{take_size, within_limit};

/// The work of following a byte of a delta, in inflated bytes.
pub(crate) const STEP_WORK: u64 = 16;

const COPY: u8 = 0x80;
const DEFAULT_COPY_BYTES: usize = 0x10000;
const OFFSET_BYTES: u32 = 4;
const LENGTH_BYTES: u32 = 3;

/// A delta with its header decoded.
#[derive(Debug, Clone, Copy)]
pub struct Delta<'a> {
    base: u64,
    size: usize,
    steps: Cursor<'a>,
}

impl<'a> Delta<'a> {
    /// Parse the header of a delta; an error if the size of the result is above the limit.
    pub fn parse(delta: &'a [u8]) -> Result<Self> {
        let mut steps = Cursor::new(delta);
        let base = take_size(&mut steps)?;
        let size = within_limit(take_size(&mut steps)?)?;
        Ok(Self { base, size, steps })
    }

    /// Return the size of the result in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Replace `to` with the result of the delta for `base`; fails if a size is not the announced
    /// one, or an instruction is impossible.
    pub fn apply(&self, base: &[u8], to: &mut Vec<u8>) -> Result<()> {
        if self.base != base.len() as u64 {
            return Err(Error::new("a delta for a base of another size"));
        }
        to.clear();
        reserve(to, self.size)?;
        let mut steps = self.steps;
        while let Some(code) = steps.byte() {
            let part = if code & COPY != 0 {
                copied(base, code, &mut steps)?
            } else {
                Some(usize::from(code))
                    .filter(|length| *length > 0)
                    .and_then(|length| steps.take_bytes(length))
                    .ok_or_else(|| Error::new("a delta with an impossible instruction"))?
            };
            if part.len() > self.size.saturating_sub(to.len()) {
                return Err(another_size());
            }
            to.extend_from_slice(part);
        }
        if to.len() != self.size {
            return Err(another_size());
        }
        Ok(())
    }
}

/// Return the bytes of the base that an instruction copies; fails if the base ends before, or the
/// delta.
fn copied<'a>(base: &'a [u8], code: u8, steps: &mut Cursor<'_>) -> Result<&'a [u8]> {
    let start = argument(code, OFFSET_BYTES, steps)?;
    let length = match argument(code >> OFFSET_BYTES, LENGTH_BYTES, steps)? {
        0 => DEFAULT_COPY_BYTES,
        length => length,
    };
    base.get(start..)
        .and_then(|rest| rest.get(..length))
        .ok_or_else(|| Error::new("a delta that copies from behind its base"))
}

/// Decode a little-endian number of `bytes` bytes, of which only those are stored that are not
/// zero: each has a bit in `present`, the first one the lowest.  Fails if the delta ends early.
fn argument(present: u8, bytes: u32, steps: &mut Cursor<'_>) -> Result<usize> {
    let mut value = 0_usize;
    for place in 0..bytes {
        if present & 1_u8.wrapping_shl(place) != 0 {
            let byte = steps
                .byte()
                .ok_or_else(|| Error::new("a delta that ends early"))?;
            value |= usize::from(byte).wrapping_shl(place.saturating_mul(8));
        }
    }
    Ok(value)
}

fn another_size() -> Error {
    Error::new("a delta that makes an object of another size than it says")
}
