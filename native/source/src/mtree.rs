//! Reads specifications as mtree of FreeBSD and NetBSD and `bsdtar --format=mtree` write them
//! (mtree(5)): by directories, from which `..` leads up, or with a whole path in each line.

use huai_format::limits::PATH_BYTES;
use huai_format::path::{parent, show};
use huai_git::error::{Error, Result};

use crate::entry::EntryType;
use crate::members::{Members, parse_mode, parse_size};
use crate::time::parse_mtree_time;

/// Bytes of a line with those that continue it.
const ENTRY_BYTES: usize = 1 << 17;
/// The keywords that are digests, all of other kinds than ours, without `digest` at their ends.
const DIGESTS: [&[u8]; 8] = [
    b"cksum",
    b"md5",
    b"rmd160",
    b"ripemd160",
    b"sha1",
    b"sha256",
    b"sha384",
    b"sha512",
];

/// A specification that is read line by line.
#[derive(Debug, Default)]
pub(crate) struct Mtree {
    /// The directory that names without a slash are in; `None` before the top and after it.
    directory: Option<Vec<u8>>,
    /// The attributes that `/set` states.
    defaults: Members,
    /// A line that goes on.
    begun: Vec<u8>,
    has_top: bool,
    /// True if a name has a slash; then no `..` need end the list.
    has_paths: bool,
}

impl Mtree {
    /// Parse the next line; returns the attributes of the entry that it completes, if any.
    pub(crate) fn take_line(&mut self, line: &[u8]) -> Result<Option<Members>> {
        let line = line.trim_ascii();
        if line.starts_with(b"#") {
            return Ok(None);
        }
        // Two are an escaped backslash.
        let backslashes = line.iter().rev().take_while(|&&byte| byte == b'\\').count();
        let (part, goes_on) = match line.strip_suffix(b"\\") {
            Some(part) if backslashes % 2 == 1 => (part, true),
            _ => (line, false),
        };
        self.begun.extend_from_slice(part);
        if self.begun.len() > ENTRY_BYTES {
            return Err(Error::new("the list has a line that is too long"));
        }
        if goes_on {
            self.begun.push(b' ');
            return Ok(None);
        }
        let line = std::mem::take(&mut self.begun);
        self.take_words(&line)
    }

    /// Return true if no line goes on, and all directories were left; the top need not be.
    pub(crate) fn is_complete(&self) -> bool {
        let is_left = self.directory.as_ref().is_none_or(Vec::is_empty);
        self.begun.is_empty() && (self.has_paths || (self.has_top && is_left))
    }

    /// Parse a line; `None` if it names no entry: it is empty, changes the defaults, or leaves a directory by `..`.  A
    /// directory without a slash contains the next names.
    fn take_words(&mut self, line: &[u8]) -> Result<Option<Members>> {
        let mut words = line
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty());
        let Some(name) = words.next() else {
            return Ok(None);
        };
        match name {
            b"/set" => {
                for word in words {
                    set(&mut self.defaults, word)?;
                }
                return Ok(None);
            }
            b"/unset" => {
                for word in words {
                    unset(&mut self.defaults, word);
                }
                return Ok(None);
            }
            b".." => {
                let directory = self.directory.take();
                let directory =
                    directory.ok_or_else(|| Error::new("`..` leads out of the tree"))?;
                self.directory = (!directory.is_empty()).then(|| parent(&directory).to_vec());
                return Ok(None);
            }
            _ => {}
        }
        let mut members = self.defaults.clone();
        for word in words {
            set(&mut members, word)?;
        }
        let path = self.path(&decoded(name)?, members.kind == Some(EntryType::Directory))?;
        members.path = Some(path);
        Ok(Some(members))
    }

    /// Return the path of a name, and enter it if it is a directory without a slash; an error for a
    /// name outside of all directories.
    fn path(&mut self, name: &[u8], is_directory: bool) -> Result<Vec<u8>> {
        if name.contains(&b'/') {
            self.has_paths = true;
            return Ok(name.strip_prefix(b"./").unwrap_or(name).to_vec());
        }
        let path = match &self.directory {
            None if name == b"." && is_directory && !self.has_top => Vec::new(),
            None => return Err(Error::new("a name outside of all directories").within(show(name))),
            Some(_) if name == b"." => return Err(Error::new("the top is listed twice")),
            Some(above) if above.is_empty() => name.to_vec(),
            Some(above) => [above, &b"/"[..], name].concat(),
        };
        self.has_top = true;
        if is_directory {
            if path.len() > PATH_BYTES {
                return Err(Error::new("a directory whose path is too long"));
            }
            self.directory = Some(path.clone());
        }
        Ok(path)
    }
}

/// Set the attribute of a word, KEYWORD or KEYWORD=VALUE; other keywords are ignored.  Fails for a malformed value.
fn set(members: &mut Members, word: &[u8]) -> Result<()> {
    let equals = word.iter().position(|&byte| byte == b'=');
    let (keyword, value) = word.split_at(equals.unwrap_or(word.len()));
    let value = value.get(1..).unwrap_or_default();
    match keyword {
        b"type" => {
            members.kind = Some(match value {
                b"file" => EntryType::File,
                b"dir" => EntryType::Directory,
                b"link" => EntryType::Symlink,
                _ => EntryType::Special,
            });
        }
        b"size" => members.size = Some(parse_size(value)?),
        b"mode" => members.mode = Some(parse_mode(value)?),
        b"time" => {
            let wrong = || Error::new("a time that is not a number of seconds");
            members.mtime =
                Some(parse_mtree_time(value).ok_or_else(|| wrong().within(show(value)))?);
        }
        b"link" => members.target = decoded(value)?,
        _ => {
            let kind = keyword.strip_suffix(b"digest").unwrap_or(keyword);
            members.has_other_digests |= DIGESTS.contains(&kind);
        }
    }
    Ok(())
}

/// Remove the default of a keyword; an unknown one is ignored.
fn unset(members: &mut Members, keyword: &[u8]) {
    match keyword {
        b"type" => members.kind = None,
        b"size" => members.size = None,
        b"mode" => members.mode = None,
        b"time" => members.mtime = None,
        b"all" => *members = Members::default(),
        _ => {}
    }
}

/// Decode a name as strvis(3) with `VIS_CSTYLE` encodes it, or with octal numbers; an error for an
/// unknown escape.
fn decoded(name: &[u8]) -> Result<Vec<u8>> {
    let mut decoded = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((&byte, more)) = rest.split_first() {
        rest = more;
        if byte != b'\\' {
            decoded.push(byte);
            continue;
        }
        let wrong = || Error::new("an unknown escape in a name").within(show(name));
        let (byte, more) = escaped(rest).ok_or_else(wrong)?;
        decoded.push(byte);
        rest = more;
    }
    Ok(decoded)
}

/// Return the byte of an escape without its backslash, and what follows; `None` for an unknown
/// escape.
fn escaped(text: &[u8]) -> Option<(u8, &[u8])> {
    if let [
        high @ b'0'..=b'3',
        middle @ b'0'..=b'7',
        low @ b'0'..=b'7',
        rest @ ..,
    ] = text
    {
        let digit = |byte: &u8| byte & 7;
        return Some(((digit(high) << 6) | (digit(middle) << 3) | digit(low), rest));
    }
    let (byte, rest) = match text {
        [b'M', b'-', byte, rest @ ..] => (byte | 0x80, rest),
        [b'M', b'^', byte, rest @ ..] => (control(*byte) | 0x80, rest),
        [b'^', byte, rest @ ..] => (control(*byte), rest),
        [byte, rest @ ..] => {
            let byte = match byte {
                b'a' => 7,
                b'b' => 8,
                b't' => b'\t',
                b'n' => b'\n',
                b'v' => 11,
                b'f' => 12,
                b'r' => b'\r',
                b's' => b' ',
                b'0' => 0,
                _ if byte.is_ascii_punctuation() => *byte,
                _ => return None,
            };
            (byte, rest)
        }
        [] => return None,
    };
    Some((byte, rest))
}

/// Return the control byte that `^` and `byte` spell.
fn control(byte: u8) -> u8 {
    if byte == b'?' { 0x7f } else { byte & 0x1f }
}
