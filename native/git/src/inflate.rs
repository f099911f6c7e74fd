//! Decompresses objects.  Only this file, `deflate` and the
//! CRC-32s use zlib.

use zlib_rs::{Inflate, InflateFlush, Status};

use crate::bug::fit;
use crate::error::{Error, Result};
use crate::window::{Source, Window};

const WINDOW_BITS: u8 = 15;
/// The bytes that zlib may add to a short incompressible text.
const SLACK_BYTES: u64 = 64;
/// The bytes that are allocated at first; doubled each time that more are needed.
const FIRST_BYTES: usize = 1 << 20;

/// A decompressor that is reused: setting one up takes longer than a small object.
pub struct Inflater(Inflate);

impl Default for Inflater {
    fn default() -> Self {
        Self(Inflate::new(true, WINDOW_BITS))
    }
}

impl Inflater {
    /// Replace `to` with the `size` bytes of a stream; fails if it has more or less.  `from` is at the
    /// end of the stream afterwards.
    ///
    /// The caller has checked `size` against a limit.
    pub fn inflate<S: Source>(
        &mut self,
        from: &mut Window<S>,
        size: usize,
        to: &mut Vec<u8>,
    ) -> Result<()> {
        self.0.reset(true);
        from.want((size as u64).saturating_add(SLACK_BYTES))?;
        // One byte more: zlib looks for the end of the stream only with room to write.
        let most = size.saturating_add(1);
        make_room(to, 0, most)?;
        let mut written = 0_usize;
        loop {
            let (read, wrote, ended) =
                self.step(from, to.get_mut(written..).unwrap_or_default())?;
            written = written.saturating_add(wrote);
            if ended {
                break;
            }
            let grown = written == to.len() && written < most;
            if grown {
                make_room(to, written, most)?;
            } else if read == 0 && wrote == 0 {
                return Err(another_size());
            }
        }
        if written != size {
            return Err(another_size());
        }
        to.truncate(size);
        Ok(())
    }

    /// Replace `to` with the first `size` bytes of a stream, or all of a shorter one.  Nothing is
    /// checked: the checksum is at the end of a stream.
    pub fn inflate_head<S: Source>(
        &mut self,
        from: &mut Window<S>,
        size: usize,
        to: &mut Vec<u8>,
    ) -> Result<()> {
        self.0.reset(true);
        make_room(to, 0, size)?;
        let mut written = 0_usize;
        while let Some(room @ [_, ..]) = to.get_mut(written..) {
            let (read, wrote, ended) = self.step(from, room)?;
            written = written.saturating_add(wrote);
            if ended || (read == 0 && wrote == 0) {
                break;
            }
        }
        to.truncate(written);
        Ok(())
    }

    /// Call zlib once; returns the bytes read and written, and true at the end of the stream.
    fn step<S: Source>(
        &mut self,
        from: &mut Window<S>,
        room: &mut [u8],
    ) -> Result<(usize, usize, bool)> {
        let before = (self.0.total_in(), self.0.total_out());
        let bytes = from.bytes()?;
        // "Finish" avoids a copy of the last 32 KiB if everything fits at once.
        let status = self
            .0
            .decompress(bytes, room, InflateFlush::Finish)
            .map_err(|error| {
                Error::new(format!("compressed bytes are damaged ({})", error.as_str()))
            })?;
        let read = grown(before.0, self.0.total_in());
        from.consume(read);
        let wrote = grown(before.1, self.0.total_out());
        Ok((read, wrote, status == Status::StreamEnd))
    }
}

#[expect(clippy::arithmetic_side_effects, reason = "zlib's counts only grow")]
fn grown(before: u64, after: u64) -> usize {
    fit(after - before)
}

/// Resize `to` to twice the bytes `written`, but at least `FIRST_BYTES` and at most `most`; fails
/// if memory is short.
fn make_room(to: &mut Vec<u8>, written: usize, most: usize) -> Result<()> {
    let size = most.min(FIRST_BYTES.max(written.saturating_mul(2)));
    reserve(to, size)?;
    to.resize(size, 0);
    Ok(())
}

/// Allocate memory for `size` bytes in all; an error if there is not enough.
pub(crate) fn reserve(to: &mut Vec<u8>, size: usize) -> Result<()> {
    to.try_reserve_exact(size.saturating_sub(to.len()))
        .map_err(|_| Error::new("not enough memory for an object"))
}

fn another_size() -> Error {
    Error::new("an object of another size than its header says")
}
