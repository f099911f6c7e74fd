//! The kinds of objects, and the headers of their records in a pack.

use crate::bug::fit;
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::limits::OBJECT_BYTES;
use crate::oid::{Checksum, Oid};

/// The kind of an object; metadata have no tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A commit: a tree with a time and a message.
    Commit,
    /// A tree: names with their ids.
    Tree,
    /// A blob: bytes.
    Blob,
}

impl Kind {
    /// Return git's name of the kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Tree => "tree",
            Self::Blob => "blob",
        }
    }

    /// Parse git's name of a kind; `None` for a tag or an unknown one.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Commit, Self::Tree, Self::Blob]
            .into_iter()
            .find(|kind| kind.name() == name)
    }

    /// Return true if objects of this kind name other objects.
    pub fn names_others(self) -> bool {
        self != Self::Blob
    }

    /// Return the code of the kind in a pack.
    fn code(self) -> u8 {
        match self {
            Self::Commit => 1,
            Self::Tree => 2,
            Self::Blob => 3,
        }
    }

    /// Return the kind of a code in a pack; `None` for a delta or an unknown one.
    fn of(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Commit),
            2 => Some(Self::Tree),
            3 => Some(Self::Blob),
            _ => None,
        }
    }
}

/// An object with its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// The kind.
    pub kind: Kind,
    /// The inflated bytes, without git's header.
    pub content: Vec<u8>,
}

/// Return the tree of a commit, given its content; `None` if it is malformed.
pub fn commit_tree(content: &[u8]) -> Option<Oid> {
    let line = content.strip_prefix(b"tree ")?;
    let end = line.iter().position(|byte| *byte == b'\n')?;
    Oid::parse_hex(line.get(..end)?)
}

impl Oid {
    /// Compute the id of an object; refuses content that was crafted to collide.
    pub fn of(kind: Kind, content: &[u8]) -> Result<Self> {
        Self::of_parts([head(kind, content).as_bytes(), content])
    }

    /// Compute the id of content that is written here.  Readers look for collisions; doing so here
    /// would take several times as long.
    pub fn of_own(kind: Kind, content: &[u8]) -> Self {
        let mut hash = Checksum::default();
        hash.update(head(kind, content).as_bytes());
        hash.update(content);
        Self::new(hash.finish())
    }
}

/// Return the bytes that git hashes before the content of an object.
fn head(kind: Kind, content: &[u8]) -> String {
    format!("{} {}\0", kind.name(), content.len())
}

/// The form of a record, as its header states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A whole object.
    Whole(Kind),
    /// A delta against the record that begins this many bytes before.
    OnOffset(u64),
    /// A delta against the object with this id.
    OnName(Oid),
}

const ON_OFFSET: u8 = 6;
const ON_NAME: u8 = 7;
const MORE: u8 = 0x80;
const LAST_SHIFT: u32 = 60;

/// Decode the header of a record: its form, and its inflated size; fails for a tag, an unknown
/// kind, or a size above the limit.
pub fn take_header(from: &mut Cursor<'_>) -> Result<(Form, usize)> {
    let mut byte = from.byte().ok_or_else(no_end)?;
    let code = byte >> 4 & 7;
    let mut size = u64::from(byte & 15);
    let mut shift = 4_u32;
    while byte & MORE != 0 {
        byte = from.byte().ok_or_else(no_end)?;
        size |= shifted(byte, shift).ok_or_else(|| Error::new("an impossible size"))?;
        shift = shift.saturating_add(7);
    }
    let form = match code {
        ON_OFFSET => Form::OnOffset(take_distance(from)?),
        ON_NAME => Form::OnName(Oid::new(from.array().ok_or_else(no_end)?)),
        code => {
            let other = || Error::new("an object that is not a commit, a tree or a blob");
            Form::Whole(Kind::of(code).ok_or_else(other)?)
        }
    };
    Ok((form, within_limit(size)?))
}

/// The form of a record that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackedForm {
    /// A whole object.
    Whole(Kind),
    /// A delta against this object.
    From(Oid),
}

/// Append the header of a record; `take_header` decodes it.
pub fn put_header(form: PackedForm, size: u64, to: &mut Vec<u8>) {
    let code = match form {
        PackedForm::Whole(kind) => kind.code(),
        PackedForm::From(_) => ON_NAME,
    };
    let first = low_bits(size, 15) | code.wrapping_shl(4);
    let rest = size >> 4;
    if rest == 0 {
        to.push(first);
    } else {
        to.push(first | MORE);
        put_size(rest, to);
    }
    if let PackedForm::From(base) = form {
        to.extend_from_slice(base.as_bytes());
    }
}

/// Append a size; the opposite of `take_size`.
pub fn put_size(mut size: u64, to: &mut Vec<u8>) {
    while size >= u64::from(MORE) {
        to.push(low_bits(size, !MORE) | MORE);
        size >>= 7;
    }
    to.push(low_bits(size, !MORE));
}

fn low_bits(value: u64, mask: u8) -> u8 {
    fit(value & u64::from(mask))
}

/// Decode the distance from a record back to its base; saturates.
fn take_distance(from: &mut Cursor<'_>) -> Result<u64> {
    let mut byte = from.byte().ok_or_else(no_end)?;
    let mut distance = u64::from(byte & !MORE);
    while byte & MORE != 0 {
        byte = from.byte().ok_or_else(no_end)?;
        distance = distance
            .saturating_add(1)
            .saturating_mul(128)
            .saturating_add(u64::from(byte & !MORE));
    }
    Ok(distance)
}

/// Decode a little-endian number of seven bits per byte, as at the head of a delta.
pub fn take_size(from: &mut Cursor<'_>) -> Result<u64> {
    let early = || Error::new("a delta that ends early");
    let mut size = 0;
    let mut shift = 0_u32;
    loop {
        let byte = from.byte().ok_or_else(early)?;
        size |=
            shifted(byte, shift).ok_or_else(|| Error::new("a delta with an impossible length"))?;
        if byte & MORE == 0 {
            return Ok(size);
        }
        shift = shift.saturating_add(7);
    }
}

/// Convert the size of an object; an error if it is above the limit.
pub fn within_limit(size: u64) -> Result<usize> {
    usize::try_from(size)
        .ok()
        .filter(|_| size <= OBJECT_BYTES)
        .ok_or_else(|| {
            Error::new(format!(
                "an object of {size} bytes; {OBJECT_BYTES} are the limit"
            ))
        })
}

/// Return seven bits of a number at their position; `None` if they do not fit.
fn shifted(byte: u8, shift: u32) -> Option<u64> {
    let bits = u64::from(byte & !MORE);
    if shift > LAST_SHIFT || bits > u64::MAX.checked_shr(shift)? {
        return None;
    }
    bits.checked_shl(shift)
}

fn no_end() -> Error {
    Error::new("an object without an end")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_git_s() {
        let oid = Oid::of(Kind::Blob, b"hello\n").unwrap();
        assert_eq!(oid.to_string(), "ce013625030ba8dba906f756967f9e9ca394464a");
        assert_eq!(oid, Oid::of_own(Kind::Blob, b"hello\n"));
    }
}
