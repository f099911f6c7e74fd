//! CRC-32 as in zlib.

use crc32fast::Hasher;

/// Return the checksum of `bytes`.
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// A checksum of bytes that come in parts.
#[derive(Debug, Default, Clone)]
pub struct Crc32(Hasher);

impl Crc32 {
    /// Add the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Return the checksum of all bytes so far.
    pub fn value(&self) -> u32 {
        self.0.clone().finalize()
    }
}
