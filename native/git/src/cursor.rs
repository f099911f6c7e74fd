//! Takes bytes and numbers from the front, without indexing.

/// The remaining bytes of a slice.  A method returns `None`, and takes nothing, if too few remain.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    /// Begin at the front of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Return the remaining bytes.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Return true at the end.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Take the next `count` bytes; `None`, and takes nothing, if fewer are left.
    pub fn take_bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// Take the next byte; `None` at the end.
    pub fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]: [u8; 1]| byte)
    }

    /// Take the next `N` bytes; `None`, and takes nothing, if fewer are left.
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    /// Take a big-endian number of four bytes.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// Take a big-endian number of eight bytes.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }
}
