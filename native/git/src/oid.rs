//! Ids of git objects: SHA-1 with collision detection.  Only this file uses the crate.

use std::cmp::Ordering;
use std::fmt;

use sha1_checked::{Builder, CollisionResult, Digest, Sha1};

use crate::error::{Error, Result};

/// The length of an id in bytes.
pub const OID_BYTES: usize = 20;

/// The id of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Oid([u8; OID_BYTES]);

impl Oid {
    /// Make an id from its bytes.
    pub fn new(bytes: [u8; OID_BYTES]) -> Self {
        Self(bytes)
    }

    /// Make an id from its bytes, if there are twenty.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Make an id from its lower-case hex digits; `None` for other text.
    pub fn parse_hex(digits: &[u8]) -> Option<Self> {
        let digit = |byte: &u8| match byte {
            b'0'..=b'9' => byte.checked_sub(b'0'),
            b'a'..=b'f' => byte.checked_sub(b'a' - 10),
            _ => None,
        };
        let values = digits.iter().map(digit).collect::<Option<Vec<u8>>>()?;
        let bytes = values.chunks(2).map(|pair| match pair {
            [high, low] => Some(high << 4 | low),
            _ => None,
        });
        Self::parse(&bytes.collect::<Option<Vec<u8>>>()?)
    }

    /// Return the bytes.
    pub fn as_bytes(&self) -> &[u8; OID_BYTES] {
        &self.0
    }

    /// Return the first byte, by which indices are divided.
    pub fn first(&self) -> u8 {
        let [first, ..] = self.0;
        first
    }

    /// Return the first eight bytes as a number: comparing these needs no call.
    fn prefix(&self) -> u64 {
        let first = self.0.first_chunk().copied();
        u64::from_be_bytes(first.unwrap_or_default())
    }

    /// Return the SHA-1 of concatenated parts; refuses content that was crafted to collide.
    pub(super) fn of_parts(parts: [&[u8]; 2]) -> Result<Self> {
        let mut hash = Sha1::new();
        for part in parts {
            hash.update(part);
        }
        finish_checked(hash).map(Self)
    }
}

impl Ord for Oid {
    fn cmp(&self, other: &Self) -> Ordering {
        let order = self.prefix().cmp(&other.prefix());
        order.then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for Oid {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Return the SHA-1, or an error if the input was crafted to collide.
fn finish_checked(hash: Sha1) -> Result<[u8; OID_BYTES]> {
    match hash.try_finalize() {
        CollisionResult::Ok(found) => Ok(found.into()),
        CollisionResult::Mitigated(_) | CollisionResult::Collision(_) => Err(Error::new(
            "an object that was crafted to share its SHA-1 with another one",
        )),
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(to, "{byte:02x}"))
    }
}

/// SHA-1 without collision detection.  At the end of a pack or an index it only proves a complete
/// transfer.
pub struct Checksum(Sha1);

impl Default for Checksum {
    fn default() -> Self {
        Self(Builder::default().detect_collision(false).build())
    }
}

impl Checksum {
    /// Add `bytes`.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Return the checksum of all bytes.
    pub fn finish(self) -> [u8; OID_BYTES] {
        self.0.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collision_is_refused() {
        // The first 320 bytes of the first file of <https://shattered.io>.
        let mut hash = Sha1::new();
        hash.update(include_bytes!("../tests/shattered-320.bin"));
        let error = finish_checked(hash).unwrap_err();
        assert!(error.to_string().contains("share its SHA-1"), "{error}");
    }
}
