//! CRC-32, as zlib has it.

/// The checksum of `bytes`.
pub fn crc32(bytes: &[u8]) -> u32 {
    zlib_rs::crc32::crc32(0, bytes)
}
