//! The stream of an rsync sender: frames of data and messages, and rsync's numbers in the data.

use std::collections::VecDeque;

use huai_git::cursor::Cursor;
use huai_git::error::{Error, Result};

/// The kind of a frame of data, as the first byte of its header has it.
const DATA: u8 = 7;
/// The messages that are kept, and the bytes of each.
const MESSAGES: usize = 100;
const MESSAGE_BYTES: usize = 1024;
/// Kinds of messages, less `DATA`: for people from the first to the last of these two.
const FIRST_TEXT: u8 = 1;
const LAST_TEXT: u8 = 8;
/// The sender could not read something.
const IO_ERROR: u8 = 22;
/// The sender ends because of an error.
const ERROR_EXIT: u8 = 86;

/// A splitter of the stream into data and messages.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// The bytes of an incomplete header or message.
    partial: Vec<u8>,
    /// The bytes of the current frame of data that are still to come.
    left: usize,
    /// Messages for people, oldest first; the newest ones push out the oldest.
    pub(super) messages: VecDeque<Vec<u8>>,
    /// True if the sender reported that it could not read something.
    pub(super) io_error: bool,
    /// True if the sender reported that it ends early.
    pub(super) has_failed: bool,
}

impl Frames {
    /// Append the data within `bytes`, the next ones of the stream, to `data`, and keep its
    /// messages.  Fails for a frame of no known kind.
    pub(super) fn feed(&mut self, mut bytes: &[u8], data: &mut Vec<u8>) -> Result<()> {
        while !bytes.is_empty() {
            if self.left > 0 {
                let (taken, rest) = bytes.split_at(self.left.min(bytes.len()));
                data.extend_from_slice(taken);
                self.left = self.left.saturating_sub(taken.len());
                bytes = rest;
                continue;
            }
            bytes = self.take_partial(bytes)?;
        }
        Ok(())
    }

    /// Take bytes of a header or of a message; returns those after it.
    fn take_partial<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8]> {
        let missing = self.frame_length().saturating_sub(self.partial.len());
        let (taken, rest) = bytes.split_at(missing.min(bytes.len()));
        self.partial.extend_from_slice(taken);
        let mut frame = Cursor::new(&self.partial);
        let Some([low, middle, high, kind]) = frame.array() else {
            return Ok(rest);
        };
        if kind < DATA {
            return Err(Error::new(
                "the stream of rsync has a frame of no known kind",
            ));
        }
        if kind == DATA {
            self.left = u32::from_le_bytes([low, middle, high, 0]) as usize;
            self.partial.clear();
        } else if self.partial.len() == self.frame_length() {
            let text = self.partial.split_off(HEADER);
            self.partial.clear();
            self.keep_message(kind.saturating_sub(DATA), text);
        }
        Ok(rest)
    }

    /// Return the bytes of a header, or of header and message if the header is complete.
    fn frame_length(&self) -> usize {
        match Cursor::new(&self.partial).array() {
            Some([low, middle, high, kind]) if kind != DATA => {
                HEADER.saturating_add(u32::from_le_bytes([low, middle, high, 0]) as usize)
            }
            _ => HEADER,
        }
    }

    /// Keep a message for people, dropping the oldest of too many, or record an error that the sender reports; other
    /// kinds are ignored.
    fn keep_message(&mut self, kind: u8, mut text: Vec<u8>) {
        match kind {
            FIRST_TEXT..=LAST_TEXT => {
                text.truncate(MESSAGE_BYTES);
                if self.messages.len() == MESSAGES {
                    self.messages.pop_front();
                }
                self.messages.push_back(text);
            }
            IO_ERROR => self.io_error |= text.iter().any(|&byte| byte != 0),
            ERROR_EXIT => self.has_failed |= text.iter().any(|&byte| byte != 0),
            _ => {}
        }
    }
}

const HEADER: usize = 4;

/// The outcome of a parser: `None` if more bytes are needed.
pub(super) type Parsed<T> = Result<Option<T>>; // prose: of a parser

/// Take the next value, or return from the function: with `None` if more bytes are needed.
macro_rules! take {
    ($parsed:expr) => {
        match $parsed {
            Some(value) => value,
            None => return Ok(None),
        }
    };
}
pub(super) use take;

/// Return the number of further bytes of a number, from its first byte.
fn extra(first: u8) -> usize {
    (first.leading_ones() as usize).min(6)
}

/// Take a number of at least `least` bytes; an error if it has more than `N`.
fn number<const N: usize>(data: &mut Cursor<'_>, least: usize) -> Parsed<[u8; N]> {
    let first = take!(data.byte());
    let more = extra(first);
    let length = least.saturating_sub(1).saturating_add(more);
    if length > N {
        return Err(too_large());
    }
    let rest = take!(data.take_bytes(length));
    let high = first & (0xff_u8 >> more);
    let mut number = [0; N];
    let bytes = rest.iter().copied().chain([high]);
    number
        .iter_mut()
        .zip(bytes)
        .for_each(|(to, from)| *to = from);
    Ok(Some(number))
}

/// Take a number of 32 bits.
pub(super) fn varint(data: &mut Cursor<'_>) -> Parsed<u32> {
    Ok(number(data, 1)?.map(u32::from_le_bytes))
}

/// Take a number of 31 bits, which counts something; an error above that.
pub(super) fn count(data: &mut Cursor<'_>) -> Parsed<u32> {
    let number = take!(varint(data)?);
    if i32::try_from(number).is_err() {
        return Err(too_large());
    }
    Ok(Some(number))
}

/// Take a number of up to 64 bits, which has at least `least` bytes.
pub(super) fn varlong(data: &mut Cursor<'_>, least: usize) -> Parsed<i64> {
    Ok(number(data, least)?.map(i64::from_le_bytes))
}

/// Take four bytes as a number; `None` until all have arrived.
pub(super) fn int(data: &mut Cursor<'_>) -> Option<u32> {
    data.array().map(u32::from_le_bytes)
}

fn too_large() -> Error {
    Error::new("the stream of rsync has a number that is too large")
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, reason = "tests cut known bytes")]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_rsync() {
        // From `write_varint` and `write_varlong` of rsync 3.2.7.
        let cases: [(&[u8], u32); 6] = [
            (&[0x00], 0),
            (&[0x7f], 127),
            (&[0x80, 0x80], 128),
            (&[0xc0, 0x34, 0x82], 0x8234),
            (&[0xe1, 0x56, 0x34, 0x12], 0x0112_3456),
            (&[0xf0, 0xff, 0xff, 0xff, 0xff], u32::MAX),
        ];
        for (bytes, number) in cases {
            let mut data = Cursor::new(bytes);
            assert_eq!(varint(&mut data).unwrap(), Some(number), "{bytes:?}");
            assert!(data.is_empty());
            for short in 0..bytes.len() {
                assert_eq!(varint(&mut Cursor::new(&bytes[..short])).unwrap(), None);
            }
        }
        assert!(varint(&mut Cursor::new(&[0xf8, 0, 0, 0, 0, 0])).is_err());
        let mut data = Cursor::new(&[0x00, 0x34, 0x12]);
        assert_eq!(varlong(&mut data, 3).unwrap(), Some(0x1234));
        let mut data = Cursor::new(&[0x65, 0x78, 0x56, 0x34]);
        assert_eq!(varlong(&mut data, 4).unwrap(), Some(0x6534_5678));
        let mut data = Cursor::new(&[0x81, 0x78, 0x56, 0x34, 0x12]);
        assert_eq!(varlong(&mut data, 4).unwrap(), Some(0x01_1234_5678));
    }

    #[test]
    fn frames_may_be_cut_anywhere() {
        let mut stream = Vec::new();
        stream.extend_from_slice(&[3, 0, 0, 7]);
        stream.extend_from_slice(b"abc");
        stream.extend_from_slice(&[6, 0, 0, 8]);
        stream.extend_from_slice(b"hello\n");
        stream.extend_from_slice(&[4, 0, 0, 29, 1, 0, 0, 0]);
        stream.extend_from_slice(&[0, 0, 0, 7, 2, 0, 0, 7]);
        stream.extend_from_slice(b"de");
        for size in 1..=stream.len() {
            let (mut frames, mut data) = (Frames::default(), Vec::new());
            for part in stream.chunks(size) {
                frames.feed(part, &mut data).unwrap();
            }
            assert_eq!(data, b"abcde");
            assert_eq!(frames.messages, [b"hello\n".to_vec()]);
            assert!(frames.io_error && !frames.has_failed);
        }
        let refused = Frames::default().feed(&[0, 0, 0, 1], &mut Vec::new());
        assert!(refused.is_err());
    }
}
