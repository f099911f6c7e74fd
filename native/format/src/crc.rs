//! CRC-32, as zlib has it.

/// The checksum of `bytes`.
pub fn crc32(bytes: &[u8]) -> u32 {
    zlib_rs::crc32::crc32(0, bytes)
}

/// The checksum of what comes piece by piece.
#[derive(Debug, Default, Clone, Copy)]
pub struct Crc32(u32);

impl Crc32 {
    /// What comes next.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0 = zlib_rs::crc32::crc32(self.0, bytes);
    }

    /// Of all that came.
    pub fn value(self) -> u32 {
        self.0
    }
}
