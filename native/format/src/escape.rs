//! Escapes bytes that would break a line (FORMAT.md, "Escaping").
//!
//! Only 0x00-0x1f, 0x7f and the backslash are escaped, each as `\xHH`, and nothing else may be:
//! every byte string has exactly one spelling.

use std::borrow::Cow;
use std::io::Write;

use huai_git::cursor::Cursor;
use huai_git::error::{Error, Result};

use crate::path::quote_bytes;

/// Return true if `byte` must be escaped in a line.
pub fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == 0x7f || byte == b'\\'
}

/// Return the spelling of `raw` in a line.
pub fn escape(raw: &[u8]) -> Cow<'_, [u8]> {
    if !raw.iter().copied().any(is_special) {
        return Cow::Borrowed(raw);
    }
    let mut text = Vec::with_capacity(raw.len());
    put_escaped(&mut text, raw);
    Cow::Owned(text)
}

/// Append the spelling of `raw` to a line: up to four times as many bytes.
pub fn put_escaped(line: &mut Vec<u8>, raw: &[u8]) {
    if !raw.iter().copied().any(is_special) {
        line.extend_from_slice(raw);
        return;
    }
    for &byte in raw {
        if is_special(byte) {
            let _ = write!(line, "\\x{byte:02x}");
        } else {
            line.push(byte);
        }
    }
}

/// Return the bytes that `text` spells; an error unless it is the canonical spelling.
pub fn unescape(text: &[u8]) -> Result<Cow<'_, [u8]>> {
    if !text.iter().copied().any(is_special) {
        return Ok(Cow::Borrowed(text));
    }
    let refuse = |rule: &str| {
        let start = quote_bytes(text.get(..200).unwrap_or(text));
        Error::new(format!("{rule}: {start}"))
    };
    let mut raw = Vec::with_capacity(text.len());
    let mut rest = Cursor::new(text);
    let mut canonical = true;
    while let Some(byte) = rest.byte() {
        if byte == b'\\' {
            raw.push(code(&mut rest).ok_or_else(|| refuse("a stray backslash"))?);
        } else {
            canonical &= !is_special(byte);
            raw.push(byte);
        }
    }
    if !canonical {
        return Err(refuse("not in canonical spelling"));
    }
    Ok(Cow::Owned(raw))
}

/// Read the byte after a backslash; `None` for an escape that is not canonical.
fn code(from: &mut Cursor<'_>) -> Option<u8> {
    match from.array()? {
        [
            b'x',
            tens @ (b'0' | b'1'),
            ones @ (b'0'..=b'9' | b'a'..=b'f'),
        ] => {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            u8::try_from(digit(tens)?.checked_mul(16)?.checked_add(digit(ones)?)?).ok()
        }
        [b'x', b'7', b'f'] => Some(0x7f),
        [b'x', b'5', b'c'] => Some(b'\\'),
        _ => None,
    }
}
