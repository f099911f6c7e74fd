//! Paths below a module, as raw bytes, and their form for people.

use std::cmp::Ordering;
use std::fmt::Write;

use huai_git::error::{Error, Result};

use crate::limits::{NAME_BYTES, PATH_BYTES};

/// A name, in any case, of folders for temporary files: of rsync's --delay-updates, and of huai.
const RESERVED: &[u8] = b".~tmp~";

/// A path relative to the module; empty for the module's own directory.
///
/// Valid: no component is empty, `.`, `..` or reserved, no NUL, not absolute, within the limits.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelPath(Vec<u8>);

impl RelPath {
    /// Return the module's own directory.
    pub fn root() -> Self {
        Self::default()
    }

    /// Check a raw path, and copy it; an error unless it is valid.
    pub fn parse(raw: &[u8]) -> Result<Self> {
        Self::check(raw).map(|()| Self(raw.to_vec()))
    }

    /// Check a raw path without a copy; an error unless it is valid.
    pub fn check(raw: &[u8]) -> Result<()> {
        if raw.len() > PATH_BYTES {
            let rule = format!("a path of {} bytes exceeds {PATH_BYTES}", raw.len());
            return Err(Error::new(rule));
        }
        if !raw.is_empty() {
            raw.split(|&byte| byte == b'/').try_for_each(check_name)?;
        }
        Ok(())
    }

    /// Make a path that the caller has checked.
    pub fn trusted(raw: Vec<u8>) -> Self {
        Self(raw)
    }

    /// Return the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Return true if it is the module's own directory.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Append `name`, which the caller has checked and may have several components.
    #[must_use]
    pub fn join(&self, name: &[u8]) -> Self {
        Self(join(&self.0, name))
    }

    /// Append `name`, which the caller has checked; an error if the path becomes too long.
    pub fn try_join(&self, name: &[u8]) -> Result<Self> {
        if self.joined_length(name.len()) > PATH_BYTES {
            let rule = format!("a path of more than {PATH_BYTES} bytes");
            let joined = self.join(name);
            let joined = joined.as_bytes().get(..200).unwrap_or(joined.as_bytes());
            return Err(Error::new(rule).within(show(joined)));
        }
        Ok(self.join(name))
    }

    /// Return the length of a path in this directory with a name of `name` bytes.
    pub fn joined_length(&self, name: usize) -> usize {
        let slash = usize::from(!self.is_root());
        self.0.len().saturating_add(slash).saturating_add(name)
    }

    /// Return the directories above, nearest first, the module's own last; no directory is above that.
    pub fn ancestors(&self) -> impl Iterator<Item = &[u8]> {
        let mut left = Some(self.as_bytes()).filter(|path| !path.is_empty());
        std::iter::from_fn(move || {
            let above = parent(left?);
            left = Some(above).filter(|path| !path.is_empty());
            Some(above)
        })
    }
}

/// Return the directory that contains `path`; empty for a top-level name.
pub fn parent(path: &[u8]) -> &[u8] {
    let slash = path.iter().rposition(|&byte| byte == b'/');
    slash.and_then(|at| path.get(..at)).unwrap_or_default()
}

/// Split a path into its directory and its last component.
pub fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let above = parent(path);
    let rest = path.get(above.len()..).unwrap_or_default();
    let name = if above.is_empty() {
        Some(rest)
    } else {
        rest.get(1..)
    };
    (above, name.unwrap_or_default())
}

/// Return the path of `name` in `directory`.
pub fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() {
        name.to_vec()
    } else {
        [directory, b"/", name].concat()
    }
}

/// Return the rest of a path at or below `directory`, which begins with a slash unless `directory`
/// is the root; `None` if the path is elsewhere.
pub fn below<'a>(path: &'a [u8], directory: &[u8]) -> Option<&'a [u8]> {
    let rest = path.strip_prefix(directory)?;
    (directory.is_empty() || matches!(rest, [] | [b'/', ..])).then_some(rest)
}

/// Return true if `path` is `directory` or is below it.
pub fn is_within(path: &[u8], directory: &[u8]) -> bool {
    below(path, directory).is_some()
}

/// Return the last component of a path.
pub fn basename(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
}

/// Return true if a name is reserved for rsync's and huai's temporary files.
pub fn is_reserved(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(RESERVED)
}

/// Check that `name` can be a component of a path: not empty, `.`, `..` or reserved, no slash or
/// NUL, not too long.
pub fn check_name(name: &[u8]) -> Result<()> {
    if is_reserved(name) {
        let rule = format!(
            "the name {} is reserved, in every directory",
            quote(&show(name))
        );
        return Err(Error::new(rule));
    }
    if name.is_empty() {
        return Err(Error::new("an empty name cannot name an entry"));
    }
    if name == b"." || name == b".." {
        return Err(Error::new(format!(
            "{} cannot name an entry",
            quote(&show(name))
        )));
    }
    if name.len() > NAME_BYTES {
        return Err(Error::new(format!(
            "a name of {} bytes exceeds {NAME_BYTES}",
            name.len()
        )));
    }
    if name.contains(&0) || name.contains(&b'/') {
        let start = show(name.get(..80).unwrap_or(name));
        return Err(Error::new(format!("a name holds NUL or '/': {start}")));
    }
    Ok(())
}

/// Compare paths by components, so that a directory precedes its entries.
pub fn path_order(one: &[u8], other: &[u8]) -> Ordering {
    let (one, other) = (one.iter().copied(), other.iter().copied());
    one.map(order_of).cmp(other.map(order_of))
}

/// Return bytes that compare as the paths do by `path_order`.
pub fn order_key(path: &[u8]) -> Vec<u8> {
    path.iter().copied().map(order_of).collect()
}

fn order_of(byte: u8) -> u8 {
    // No name has a NUL, which sorts before any other byte.
    if byte == b'/' { 0 } else { byte }
}

/// Add `place` to an error.
pub fn at(place: &RelPath, error: Error) -> Error {
    error.within(show(place.as_bytes()))
}

/// Format a path for people, `.` for the empty one: undecodable bytes and control characters are
/// escaped.
pub fn show(path: &[u8]) -> String {
    if path.is_empty() {
        return ".".to_owned();
    }
    let mut text = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        for letter in chunk.valid().chars() {
            show_char(letter, &mut text);
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// Append a character as `show` formats it.
fn show_char(letter: char, shown: &mut String) {
    let code = u32::from(letter);
    let _ = match letter {
        '\t' => shown.write_str("\\t"),
        '\n' => shown.write_str("\\n"),
        '\r' => shown.write_str("\\r"),
        _ if is_printable(letter) => shown.write_char(letter),
        _ if code < 0x100 => write!(shown, "\\x{code:02x}"),
        _ if code < 0x1_0000 => write!(shown, "\\u{code:04x}"),
        _ => write!(shown, "\\U{code:08x}"),
    };
}

fn is_printable(letter: char) -> bool {
    // As part of a string: a combining mark alone would be escaped.
    matches!(letter, '\'' | '"' | '\\')
        || String::from_iter(['a', letter]).escape_debug().count() == 2
}

/// Put text that `show` returned in quotes, as Python's `repr` does.
pub fn quote(escaped: &str) -> String {
    let escaped = escaped.replace('\\', "\\\\");
    if escaped.contains('\'') && !escaped.contains('"') {
        format!("\"{escaped}\"")
    } else {
        format!("'{}'", escaped.replace('\'', "\\'"))
    }
}

/// Format bytes of a line for people, in quotes; bytes that are not printable ASCII are escaped.
pub fn quote_bytes(raw: &[u8]) -> String {
    let mark = if raw.contains(&b'\'') && !raw.contains(&b'"') {
        '"'
    } else {
        '\''
    };
    let mut quoted = format!("b{mark}");
    for &byte in raw {
        let _ = match byte {
            b'\\' => quoted.write_str("\\\\"),
            b'\t' => quoted.write_str("\\t"),
            b'\n' => quoted.write_str("\\n"),
            b'\r' => quoted.write_str("\\r"),
            b'\'' if mark == '\'' => quoted.write_str("\\'"),
            0x20..=0x7e => quoted.write_char(char::from(byte)),
            _ => write!(quoted, "\\x{byte:02x}"),
        };
    }
    quoted.push(mark);
    quoted
}

#[cfg(test)]
mod tests {
    use super::is_within;

    #[test]
    fn what_is_within_a_directory_begins_with_its_name_and_a_slash() {
        assert!(is_within(b"a/b", b"a") && is_within(b"a", b"a") && is_within(b"a", b""));
        assert!(!is_within(b"ab", b"a"));
    }
}
