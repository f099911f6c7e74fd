//! Searches for a byte, as quickly as the standard library can.

use std::io::BufRead;

/// Return the first position of `byte` in `text`; `None` without one.
pub fn position(text: &[u8], byte: u8) -> Option<usize> {
    // The standard library has no other public search for a byte by whole words.
    let mut rest = text;
    let at = rest.skip_until(byte).ok()?.checked_sub(1)?;
    (text.get(at) == Some(&byte)).then_some(at)
}

/// Split `text` before the first `byte`; without one, the second part is empty.
pub fn split_before(text: &[u8], byte: u8) -> (&[u8], &[u8]) {
    text.split_at(position(text, byte).unwrap_or(text.len()))
}
