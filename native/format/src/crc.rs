//! CRC-32, as zlib has it.

use crc32fast::Hasher;

/// The checksum of `bytes`.
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// The checksum of what comes piece by piece.
#[derive(Debug, Default, Clone)]
pub struct Crc32(Hasher);

impl Crc32 {
    /// What comes next.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Of all that came.
    pub fn value(&self) -> u32 {
        self.0.clone().finalize()
    }
}
