//! The records of a bundle: many small files in one response (FORMAT.md, "Bundles").

use huai_git::cursor::Cursor;
use huai_git::error::{Error, Result};

use crate::limits::BUNDLED_BYTES;

/// The head of the record of one requested path, in the order of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Head {
    /// The file is as the newest commit states; its content follows.
    File {
        /// The size in bytes, at most `BUNDLED_BYTES`.
        size: u32,
        /// The time in nanoseconds since the epoch.
        mtime: i64,
    },
    /// The newest commit has no such file.
    Missing,
    /// The file has changed or is gone since the newest commit.
    Changed,
    /// The server may not read the file, or cannot.
    Unreadable,
    /// The file is too large for a bundle.
    Large,
}

impl Head {
    /// Append the encoded head to `out`.
    pub fn encode(self, out: &mut Vec<u8>) {
        match self {
            Self::File { size, mtime } => {
                out.push(b'F');
                out.extend(size.to_be_bytes());
                out.extend(mtime.to_be_bytes());
            }
            Self::Missing => out.push(b'M'),
            Self::Changed => out.push(b'C'),
            Self::Unreadable => out.push(b'U'),
            Self::Large => out.push(b'L'),
        }
    }

    /// Take a head, and the content of a file, from the front; `None`, and nothing is taken, if
    /// more bytes are needed.  An error for an unknown kind or too large a file.
    pub fn read_from<'a>(from: &mut Cursor<'a>) -> Result<Option<(Self, &'a [u8])>> {
        let mut rest = *from;
        let Some(kind) = rest.byte() else {
            return Ok(None);
        };
        let head = match kind {
            b'F' => {
                let (Some(size), Some(mtime)) = (rest.u32(), rest.array()) else {
                    return Ok(None);
                };
                let mtime = i64::from_be_bytes(mtime);
                Self::File { size, mtime }
            }
            b'M' => Self::Missing,
            b'C' => Self::Changed,
            b'U' => Self::Unreadable,
            b'L' => Self::Large,
            _ => return Err(Error::new("a record of a bundle of an unknown kind")),
        };
        let size = match head {
            Self::File { size, .. } if size > BUNDLED_BYTES => {
                return Err(Error::new("a file in a bundle that is too large for it"));
            }
            Self::File { size, .. } => size as usize,
            _ => 0,
        };
        Ok(rest.take_bytes(size).map(|content| {
            *from = rest;
            (head, content)
        }))
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, reason = "tests index what they made")]
mod tests {
    use super::*;

    const FILE: Head = Head::File { size: 3, mtime: -5 };

    fn bundle() -> Vec<u8> {
        let mut bytes = Vec::new();
        Head::Missing.encode(&mut bytes);
        FILE.encode(&mut bytes);
        bytes.extend(b"abc");
        for head in [Head::Changed, Head::Unreadable, Head::Large] {
            head.encode(&mut bytes);
        }
        bytes
    }

    #[test]
    fn records_come_back() {
        let bytes = bundle();
        let mut cursor = Cursor::new(&bytes);
        let mut records = Vec::new();
        while let Some(record) = Head::read_from(&mut cursor).unwrap() {
            records.push(record);
        }
        let file = (FILE, &b"abc"[..]);
        let heads = [Head::Changed, Head::Unreadable, Head::Large].map(|head| (head, &b""[..]));
        assert_eq!(records[..2], [(Head::Missing, &b""[..]), file]);
        assert_eq!(records[2..], heads);
        assert!(cursor.is_empty());
    }

    #[test]
    fn a_cut_record_is_not_taken() {
        let bytes = bundle();
        for end in 1..17 {
            let mut cursor = Cursor::new(&bytes[1..end]);
            assert_eq!(Head::read_from(&mut cursor).unwrap(), None, "{end}");
            assert_eq!(cursor.rest(), &bytes[1..end]);
        }
    }

    #[test]
    fn hostile_heads_are_refused_before_their_content() {
        let large = [b"F\0\x01\0\x01".as_slice(), &[0; 8]].concat();
        for bytes in [&b"<html>"[..], b"\0", &large] {
            assert!(
                Head::read_from(&mut Cursor::new(bytes)).is_err(),
                "{bytes:?}"
            );
        }
    }
}
