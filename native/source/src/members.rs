//! The attributes of one entry as a list states them, and the entry that they make.

use huai_format::entries::Digest;
use huai_format::path::show;
use huai_git::error::{Error, Result};
use serde_json::value::RawValue;

use crate::entry::{EntryType, ListEntry, UNSTATED, usual_mode};
use crate::time::{parse_decimal_time, parse_rfc3339_time};

const MODE: u16 = 0o7777;

/// The attributes of an entry, as far as a list states them.
#[derive(Debug, Default, Clone)]
pub(crate) struct Members {
    pub(crate) path: Option<Vec<u8>>,
    pub(crate) kind: Option<EntryType>,
    pub(crate) size: Option<i64>,
    pub(crate) mtime: Option<i128>,
    pub(crate) mode: Option<u16>,
    pub(crate) target: Vec<u8>,
    pub(crate) digest: Option<Digest>,
    pub(crate) has_other_digests: bool,
    /// True for an object of rclone, of which some remotes state the present as a directory's time.
    pub(crate) is_of_rclone: bool,
}

impl Members {
    /// Return the entry; `None` if the list states that its size is not known.  An error without a
    /// path, without the mtime or the size of a file, or without a symlink's mtime or target.
    pub(crate) fn into_entry(self) -> Result<Option<ListEntry>> {
        let Some(path) = self.path else {
            return Err(Error::new("an entry without a path"));
        };
        let kind = self.kind.unwrap_or(EntryType::File);
        let is_directory = kind == EntryType::Directory;
        let has_no = |what: &str| Error::new(format!("has no {what}")).within(show(&path));
        let mtime = match self.mtime.filter(|_| !(is_directory && self.is_of_rclone)) {
            Some(mtime) => mtime,
            None if is_directory || kind == EntryType::Special => UNSTATED.into(),
            None => return Err(has_no("mtime")),
        };
        let size = match self.size {
            Some(size) => u64::try_from(size).ok(),
            None if kind == EntryType::File => return Err(has_no("size")),
            None => Some(0),
        };
        if kind == EntryType::Symlink && self.target.is_empty() {
            return Err(has_no("target"));
        }
        // Rclone states a negative size where it does not know one.
        let Some(size) = size.or(is_directory.then_some(0)) else {
            return Ok(None);
        };
        Ok(Some(ListEntry {
            path,
            kind,
            size,
            mtime,
            mode: self.mode.unwrap_or(usual_mode(kind)),
            owner: (0, 0),
            target: self.target,
            group: None,
            digest: self.digest,
        }))
    }
}

/// Return the type of this name; every unknown one is special.
pub(crate) fn entry_type(name: &[u8]) -> EntryType {
    match name {
        b"file" => EntryType::File,
        b"directory" => EntryType::Directory,
        b"symlink" => EntryType::Symlink,
        _ => EntryType::Special,
    }
}

/// Parse a size, a whole number that may be negative, or return an error.
pub(crate) fn parse_size(word: &[u8]) -> Result<i64> {
    let number = std::str::from_utf8(word)
        .ok()
        .and_then(|it| it.parse().ok());
    number.ok_or_else(|| Error::new("a size that is not a whole number"))
}

/// Parse a number of seconds since the epoch, or a text of RFC 3339, to nanoseconds since the epoch; `None` for an
/// empty text, an error for any other.
pub(crate) fn parse_time(value: &RawValue) -> Result<Option<i128>> {
    let value = value.get();
    let text = value
        .starts_with('"')
        .then(|| serde_json::from_str::<String>(value));
    let (text, parsed) = match &text {
        Some(Ok(text)) if text.is_empty() => return Ok(None),
        Some(Ok(text)) => (text.as_str(), parse_rfc3339_time(text.as_bytes())),
        _ => (value, parse_decimal_time(value.as_bytes())),
    };
    let wrong = || Error::new("neither seconds since the epoch nor a time of RFC 3339");
    parsed
        .map(Some)
        .ok_or_else(|| wrong().within(show(text.as_bytes())))
}

/// Parse an octal mode, or return an error.
pub(crate) fn parse_mode(text: &[u8]) -> Result<u16> {
    let digits = std::str::from_utf8(text)
        .ok()
        .filter(|it| !it.starts_with('+'));
    let mode = digits.and_then(|it| u16::from_str_radix(it, 8).ok());
    let mode = mode.filter(|&mode| mode <= MODE);
    mode.ok_or_else(|| Error::new("a mode that is not octal").within(show(text)))
}

/// Parse 64 hexadecimal digits to a digest, or return an error.
pub(crate) fn parse_digest(text: &[u8]) -> Result<Digest> {
    let mut digest = Digest::default();
    let pairs = text.chunks_exact(2);
    let is_long = pairs.len() == digest.len() && pairs.remainder().is_empty();
    if !is_long || !text.iter().all(u8::is_ascii_hexdigit) {
        return Err(malformed_digest(text));
    }
    for (byte, pair) in digest.iter_mut().zip(pairs) {
        let pair = std::str::from_utf8(pair).map_err(|_| malformed_digest(text))?;
        *byte = u8::from_str_radix(pair, 16).map_err(|_| malformed_digest(text))?;
    }
    Ok(digest)
}

fn malformed_digest(text: &[u8]) -> Error {
    Error::new("not a BLAKE3 digest of 64 hexadecimal digits").within(show(text))
}
