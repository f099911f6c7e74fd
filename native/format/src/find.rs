//! Looking for a byte, as quickly as the standard library can.

use std::io::BufRead;

/// Where `byte` stands first in `text`.
pub fn position(text: &[u8], byte: u8) -> Option<usize> {
    // The only search for a byte by whole words that the standard library has for all to use.
    let mut rest = text;
    let at = rest.skip_until(byte).ok()?.checked_sub(1)?;
    (text.get(at) == Some(&byte)).then_some(at)
}

/// What of `text` stands before `byte`, and the rest from there on; all, if there is none.
pub fn split_before(text: &[u8], byte: u8) -> (&[u8], &[u8]) {
    text.split_at(position(text, byte).unwrap_or(text.len()))
}
