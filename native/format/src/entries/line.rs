//! Decodes lines to entries (FORMAT.md, "Lines").
//!
//! Strict: a line decodes only if it is the one canonical spelling of its entry.

use std::borrow::Cow;
use std::ops::Range;

use huai_git::cursor::Cursor;
use huai_git::error::{Error, Result};
use huai_git::find::{position, split_before};

use super::digests::is_zero;
use super::entry::{Body, DIRECTORY_MODE, Digest, Entry, FILE_MODE, SYMLINK_MODE};
use super::fields::{Fields, Mtime, number};
use super::leader::resolve;
use crate::escape::unescape;
use crate::limits::{DIGEST_BYTES, LINE_BYTES, PATH_BYTES, SIZE_MAX, TARGET_BYTES};
use crate::path::{RelPath, at, check_name, show};

const SIZE_DIGITS: usize = 19;

/// A decoder of the leaves of one directory; checks that names are sorted and unique.
///
/// Ends after the first error.
#[derive(Debug, Clone)]
pub struct Leaves<'a> {
    directory: &'a RelPath,
    text: &'a [u8],
    digests: Option<Cursor<'a>>,
    previous: Cow<'a, [u8]>,
    /// True if there were more files than digests.
    is_short: bool,
    failed: bool,
}

/// The position of a reader of leaves, from which another can continue.
#[derive(Debug, Clone)]
pub struct Bookmark {
    text_left: usize,
    digests_left: usize,
    is_short: bool,
    previous: Vec<u8>,
}

impl Bookmark {
    /// Return the position before all of `text` and `digests`.
    pub fn start(text: &[u8], digests: &[u8]) -> Self {
        Self {
            text_left: text.len(),
            digests_left: digests.len(),
            is_short: false,
            previous: Vec::new(),
        }
    }
}

impl<'a> Leaves<'a> {
    /// Decode all of `text`; `digests` has 32 bytes for each file, or is empty if all are absent.
    pub fn new(directory: &'a RelPath, text: &'a [u8], digests: &'a [u8]) -> Self {
        Self {
            directory,
            text,
            digests: (!digests.is_empty()).then(|| Cursor::new(digests)),
            previous: Cow::Borrowed(b""),
            is_short: false,
            failed: false,
        }
    }

    /// Continue at a bookmark; `text` and `digests` are again the complete ones.
    pub fn resume(
        directory: &'a RelPath,
        text: &'a [u8],
        digests: &'a [u8],
        from: &'a Bookmark,
    ) -> Self {
        let mut leaves = Self::new(directory, text, digests);
        leaves.text = last(text, from.text_left);
        if leaves.digests.is_some() {
            leaves.digests = Some(Cursor::new(last(digests, from.digests_left)));
        }
        leaves.is_short = from.is_short;
        leaves.previous = Cow::Borrowed(&from.previous);
        leaves
    }

    /// Return the current position.
    pub fn bookmark(&self) -> Bookmark {
        Bookmark {
            text_left: self.text.len(),
            digests_left: self.digests.map_or(0, |digests| digests.rest().len()),
            is_short: self.is_short,
            previous: self.previous.to_vec(),
        }
    }

    /// Decode the next leaf, `None` at the end; there, check that each digest had a file.
    fn decode(&mut self) -> Result<Option<Entry<'a>>> {
        if self.text.is_empty() {
            let is_long = self.digests.is_some_and(|digests| !digests.is_empty());
            return if is_long || self.is_short {
                let rule = "the digest column does not have one digest for each file";
                Err(at(self.directory, Error::new(rule)))
            } else {
                Ok(None)
            };
        }
        let (line, rest) = self.split_line()?;
        let parts = Parts::of(line).ok_or_else(|| self.refuse_line(line))?;
        let digest = if parts.target.is_none() {
            self.take_digest()
        } else {
            None
        };
        let entry = self
            .entry(&parts, digest)
            .map_err(|error| error.within(self.place(parts.name)))?;
        self.text = rest;
        self.previous = entry.name.clone();
        Ok(Some(entry))
    }

    /// Return the next line and the rest; an error if the line is too long or not ended.
    fn split_line(&self) -> Result<(&'a [u8], &'a [u8])> {
        let within = self.text.get(..LINE_BYTES).unwrap_or(self.text);
        let Some(end) = position(within, b'\n') else {
            if within.len() < self.text.len() {
                let rule = format!("a line of more than {LINE_BYTES} bytes");
                return Err(at(self.directory, Error::new(rule)));
            }
            return Err(self.refuse_line(within));
        };
        let (line, rest) = self.text.split_at(end);
        Ok((line, rest.get(1..).unwrap_or_default()))
    }

    /// Decode a line to an entry; an error unless it is canonical, and its name sorts after the one before.
    fn entry(&self, parts: &Parts<'a>, digest: Option<Digest>) -> Result<Entry<'a>> {
        let name = unescape(parts.name)?;
        if *name <= *self.previous {
            return Err(Error::new("names are not sorted or not unique"));
        }
        check_name(&name)?;
        if self.directory.joined_length(name.len()) > PATH_BYTES {
            return Err(Error::new(format!(
                "a path of more than {PATH_BYTES} bytes"
            )));
        }
        let mtime = parts.mtime.decode()?;
        let (default, body) = match parts.target {
            Some(target) => (SYMLINK_MODE, symlink(target)?),
            None => (FILE_MODE, file(parts.size, digest)?),
        };
        let fields = Fields::decode(parts.fields, default)?;
        let body = match (body, &fields.link) {
            (body, None) => body,
            (Body::File { size, digest, .. }, Some(relative)) => Body::File {
                size,
                link: Some(resolve(relative, self.directory, &name)?),
                digest,
            },
            _ => return Err(Error::new("a symlink cannot be a hardlink")),
        };
        Ok(fields.of(name, mtime, body))
    }

    /// Take the digest of the next file from the column; `None` for zeros.
    fn take_digest(&mut self) -> Option<Digest> {
        let digest = self.digests.as_mut()?.array();
        self.is_short |= digest.is_none();
        digest.filter(|digest: &Digest| !is_zero(digest))
    }

    fn refuse_line(&self, line: &[u8]) -> Error {
        let start = line.get(..200).unwrap_or(line);
        Error::new("not a canonical line").within(self.place(start))
    }

    /// Return the place of an error; `text` is escaped as in its line, perhaps wrongly.
    fn place(&self, text: &[u8]) -> String {
        show(self.directory.join(text).as_bytes())
    }
}

impl<'a> Iterator for Leaves<'a> {
    type Item = Result<Entry<'a>>;

    /// Return the next leaf; after an error nothing more.
    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let decoded = self.decode();
        self.failed = decoded.is_err();
        decoded.transpose()
    }
}

/// A line of sorted leaves, not decoded, with its digest.
#[derive(Debug, Clone, Copy)]
pub struct RawLeaf<'a> {
    /// Escaped.
    pub name: &'a [u8],
    /// The line with its newline.
    pub line: &'a [u8],
    /// The digest: 32 bytes for a file; empty for a symlink, or without digests.
    pub digest: &'a [u8],
    /// True for a regular file, false for a symlink.
    pub is_file: bool,
}

/// Return each line of a well-formed listing with its digest, not decoded; that is empty for a symlink and without
/// `digests`.
pub fn raw_leaves<'a>(
    leaves: &'a [u8],
    mut digests: &'a [u8],
) -> impl Iterator<Item = RawLeaf<'a>> {
    let lines = leaves.split_inclusive(|&byte| byte == b'\n');
    lines.map(move |line| {
        let (name, fields) = split_before(line, b'\t');
        let is_file = !fields.starts_with(b"\t>");
        let size = if is_file { DIGEST_BYTES } else { 0 };
        let (digest, rest) = digests.split_at(size.min(digests.len()));
        digests = rest;
        RawLeaf {
            name,
            line,
            digest,
            is_file,
        }
    })
}

/// Decode the attribute fields of a directory, as an entry without a name; `path` is for errors.
/// An error unless they are canonical.
pub fn decode_directory<'a>(path: &RelPath, attributes: &'a [u8]) -> Result<Entry<'a>> {
    let place = |error: Error| at(path, error);
    let mut rest = Cursor::new(attributes);
    let mtime = Some(take_field(&mut rest))
        .filter(|_| attributes.len() < LINE_BYTES && !holds_control(attributes))
        .and_then(Mtime::of)
        .filter(|_| are_fields(rest.rest()));
    let mtime = mtime.ok_or_else(|| place(Error::new("not canonical directory attributes")))?;
    let fields = Fields::decode(rest.rest(), DIRECTORY_MODE).map_err(place)?;
    if fields.link.is_some() {
        return Err(place(Error::new("a directory cannot be a hardlink")));
    }
    let mtime = mtime.decode().map_err(place)?;
    Ok(fields.of(Cow::Borrowed(b""), mtime, Body::Directory))
}

/// Return true if sorted `leaves` have a leaf with this raw name; reads a few lines only.
pub fn has_leaf(leaves: &[u8], name: &[u8]) -> Result<bool> {
    Ok(find_leaf(leaves, name)?.is_some())
}

/// Return the range of the line, LF included, of the leaf with this raw name in sorted `leaves`;
/// `None` if they lack it.  Reads a few lines only.
pub fn find_leaf(leaves: &[u8], name: &[u8]) -> Result<Option<Range<usize>>> {
    let (mut begin, mut end) = (0, leaves.len());
    while let Some(left) = leaves.get(begin..end).filter(|left| !left.is_empty()) {
        let middle = left.len().div_euclid(2);
        let (before, _) = left.split_at(middle);
        let newline = before.iter().rposition(|&byte| byte == b'\n');
        let (before, from) = left.split_at(newline.map_or(0, |at| at.saturating_add(1)));
        let length = position(from, b'\n').map_or(from.len(), |at| at.saturating_add(1));
        let (line, _) = from.split_at(length);
        let line_start = usize::saturating_add(begin, before.len());
        let after = line_start.saturating_add(length);
        let line_name = unescape(take_field(&mut Cursor::new(line)))?;
        match (*line_name).cmp(name) {
            std::cmp::Ordering::Equal => return Ok(Some(line_start..after)),
            std::cmp::Ordering::Less => begin = after,
            std::cmp::Ordering::Greater => end = line_start,
        }
    }
    Ok(None)
}

/// The fields of a leaf's line, not decoded.
struct Parts<'a> {
    name: &'a [u8],
    size: u64,
    target: Option<&'a [u8]>,
    mtime: Mtime<'a>,
    fields: &'a [u8],
}

impl<'a> Parts<'a> {
    /// Split `line`, which has no LF; `None` if it cannot be canonical.
    fn of(line: &'a [u8]) -> Option<Self> {
        if holds_control(line) {
            return None;
        }
        let mut rest = Cursor::new(line);
        let name = take_field(&mut rest);
        rest.byte()?;
        let second = take_field(&mut rest);
        rest.byte()?;
        let mtime = Mtime::of(take_field(&mut rest))?;
        let target = second.strip_prefix(b">");
        let size = if target.is_none() {
            number(second, SIZE_DIGITS)?
        } else {
            0
        };
        let good = !name.is_empty()
            && !name.contains(&b'/')
            && target.is_none_or(|target| !target.is_empty())
            && are_fields(rest.rest());
        good.then(|| Self {
            name,
            size,
            target,
            mtime,
            fields: rest.rest(),
        })
    }
}

/// Return the body of a file; an error for a size above the limit.
fn file(size: u64, digest: Option<Digest>) -> Result<Body<'static>> {
    if size > SIZE_MAX {
        return Err(Error::new(format!("a size of {size} bytes")));
    }
    Ok(Body::File {
        size,
        link: None,
        digest,
    })
}

/// Return the body of a symlink; an error for a target that is too long or holds NUL.
fn symlink(text: &[u8]) -> Result<Body<'_>> {
    let target = unescape(text)?;
    if target.len() > TARGET_BYTES || target.contains(&0) {
        return Err(Error::new("a symlink's target is too long or holds NUL"));
    }
    Ok(Body::Symlink { target })
}

/// Take the text up to the next tab, or all.
fn take_field<'a>(from: &mut Cursor<'a>) -> &'a [u8] {
    let (field, _) = split_before(from.rest(), b'\t');
    from.take_bytes(field.len()).unwrap_or_default()
}

/// Return true if `text` is empty, or a list of non-empty fields that each begin with a tab.
fn are_fields(text: &[u8]) -> bool {
    text.is_empty()
        || (text.first() == Some(&b'\t')
            && text.last() != Some(&b'\t')
            && !text.windows(2).any(|pair| pair == b"\t\t"))
}

/// Return true if `text` has a control character other than a tab.
fn holds_control(text: &[u8]) -> bool {
    // The fold reads all bytes without a branch: faster than stopping early.
    let control = |byte: u8| (byte < 0x20 && byte != b'\t') || byte == 0x7f;
    text.iter()
        .fold(0, |found, &byte| found | u8::from(control(byte)))
        != 0
}

/// Return the last `count` bytes of `text`.
fn last(text: &[u8], count: usize) -> &[u8] {
    text.get(text.len().saturating_sub(count)..)
        .unwrap_or_default()
}
