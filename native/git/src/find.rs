//! Searches for a byte, as quickly as the standard library can.

use std::io::BufRead;

/// Return the first position of `byte` in `text`.
pub fn position(text: &[u8], byte: u8) -> Option<usize> {
    // The standard library has no other public search for a byte by whole words.
    let mut rest = text;
    let at = rest.skip_until(byte).ok()?.checked_sub(1)?;
    (text.get(at) == Some(&byte)).then_some(at)
}

/// Split `text` before `byte`; without it, the rest is empty.
pub fn split_before(text: &[u8], byte: u8) -> (&[u8], &[u8]) {
    text.split_at(position(text, byte).unwrap_or(text.len()))
}
