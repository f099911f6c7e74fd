//! The attributes in a line: time, mode, owners (FORMAT.md, "Lines").

use std::borrow::Cow;

use huai_git::error::{Error, Result};

use super::entry::{Body, Entry, ROOT_OWNER};
use crate::escape::unescape;
use crate::limits::{MTIME_MAX, OWNER_BYTES};
use crate::path::quote_bytes;

const NANOSECONDS: i128 = 1_000_000_000;
const SECOND_DIGITS: usize = 12;

/// A time in its text form.
#[derive(Clone, Copy)]
pub(crate) struct Mtime<'a> {
    seconds: &'a [u8],
    /// The number that `seconds` spells.
    value: i128,
    fraction: &'a [u8],
}

impl<'a> Mtime<'a> {
    /// Split `text`; `None` if it is not a canonical time.
    pub(crate) fn of(text: &'a [u8]) -> Option<Self> {
        let dot = text.iter().position(|&byte| byte == b'.');
        let (seconds, fraction) = text.split_at(dot.unwrap_or(text.len()));
        let digits = seconds.strip_prefix(b"-").unwrap_or(seconds);
        let value = i128::from(number(digits, SECOND_DIGITS)?);
        let is_negative = digits.len() != seconds.len();
        if is_negative && value == 0 {
            return None;
        }
        let fraction = match fraction.split_first() {
            None => fraction,
            Some((_, digits)) => {
                let good = digits.len() <= 9
                    && digits.iter().all(u8::is_ascii_digit)
                    && digits.last().is_some_and(|&digit| digit != b'0');
                good.then_some(digits)?
            }
        };
        Some(Self {
            seconds,
            value: if is_negative {
                value.saturating_neg()
            } else {
                value
            },
            fraction,
        })
    }

    /// Return the time in nanoseconds since the epoch; an error if it is out of range.
    pub(crate) fn decode(self) -> Result<i64> {
        let nanoseconds = self.value.saturating_mul(NANOSECONDS);
        let places = self.fraction.iter().copied().chain(std::iter::repeat(b'0'));
        let rest = places.take(9).fold(0, push_digit);
        i64::try_from(nanoseconds.saturating_add(i128::from(rest)))
            .ok()
            .filter(|found| (-MTIME_MAX..=MTIME_MAX).contains(found))
            .ok_or_else(|| {
                let seconds = String::from_utf8_lossy(self.seconds);
                Error::new(format!("a time out of range: {seconds} s"))
            })
    }
}

/// The known fields after the time.
pub(crate) struct Fields<'a> {
    mode: u16,
    owner: Cow<'a, [u8]>,
    group: Cow<'a, [u8]>,
    /// The leader of the hardlink group, as spelled.
    pub(crate) link: Option<Cow<'a, [u8]>>,
}

impl<'a> Fields<'a> {
    /// Decode `text`, which begins with the tab of its first field or is empty; without a mode,
    /// `default_mode` is meant.  Ignores unknown fields with a lower-case key.  An error for fields
    /// that are out of order or repeated, and for one that only a newer version understands.
    pub(crate) fn decode(text: &'a [u8], default_mode: u16) -> Result<Self> {
        let mut fields = Self {
            mode: default_mode,
            owner: Cow::Borrowed(ROOT_OWNER),
            group: Cow::Borrowed(ROOT_OWNER),
            link: None,
        };
        let mut rank = 0;
        for field in text.split(|&byte| byte == b'\t').skip(1) {
            let Some((&key, value)) = field.split_first() else {
                continue;
            };
            let place = fields.set(key, value, field, default_mode)?;
            // Unknown fields come last, in any order and number.
            if place < rank || (place == rank && rank < UNKNOWN) {
                let start = quote_bytes(text.get(..80).unwrap_or(text));
                let rule = format!("fields are out of order or repeated: {start}");
                return Err(Error::new(rule));
            }
            rank = place;
        }
        Ok(fields)
    }

    /// Set one field; returns its position in the order of fields.  Fails for a wrong value, or a key that this
    /// version must understand and does not.
    fn set(&mut self, key: u8, value: &'a [u8], field: &[u8], default_mode: u16) -> Result<u8> {
        match key {
            b'm' => {
                self.mode = decode_mode(value, default_mode)?;
                Ok(1)
            }
            b'u' => {
                self.owner = decode_owner(value)?;
                Ok(2)
            }
            b'g' => {
                self.group = decode_owner(value)?;
                Ok(3)
            }
            b'h' => {
                self.link = Some(unescape(value)?);
                Ok(4)
            }
            b'a'..=b'z' => Ok(UNKNOWN),
            _ => {
                let start = quote_bytes(field.get(..40).unwrap_or(field));
                let rule = format!("a field this version must understand, and does not: {start}");
                Err(Error::new(rule))
            }
        }
    }

    /// Make an entry with these fields, except the link: that is in `body`.
    pub(crate) fn of(self, name: Cow<'a, [u8]>, mtime: i64, body: Body<'a>) -> Entry<'a> {
        Entry {
            name,
            mtime,
            mode: self.mode,
            owner: self.owner,
            group: self.group,
            body,
        }
    }
}

/// The position of unknown fields.
const UNKNOWN: u8 = 5;

/// Decode an octal mode; an error for the default or a spelling that is not canonical.
fn decode_mode(value: &[u8], default: u16) -> Result<u16> {
    let good = value.len() <= 4
        && value.iter().all(|byte| (b'0'..=b'7').contains(byte))
        && (value == b"0" || value.first().is_some_and(|&first| first != b'0'));
    let bits = value.iter().fold(0_u16, |mode, byte| {
        mode.wrapping_shl(3) | u16::from(byte & 7)
    });
    if !good || bits == default {
        let start = quote_bytes(value.get(..40).unwrap_or(value));
        return Err(Error::new(format!("not a canonical mode: {start}")));
    }
    Ok(bits)
}

/// Decode an owner; an error for root or an invalid name.
fn decode_owner(value: &[u8]) -> Result<Cow<'_, [u8]>> {
    let owner = unescape(value)?;
    let good = !owner.is_empty()
        && *owner != *ROOT_OWNER
        && owner.len() <= OWNER_BYTES
        && !owner.contains(&0);
    if !good {
        let start = quote_bytes(value.get(..40).unwrap_or(value));
        return Err(Error::new(format!("not a canonical owner: {start}")));
    }
    Ok(owner)
}

/// Parse a decimal number of at most `digits` digits, without a leading zero; `None` for other
/// text.
pub(crate) fn number(text: &[u8], digits: usize) -> Option<u64> {
    let good = text.len() <= digits
        && text.iter().all(u8::is_ascii_digit)
        && (text == b"0" || text.first().is_some_and(|&first| first != b'0'));
    good.then(|| text.iter().copied().fold(0, push_digit))
}

fn push_digit(number: u64, digit: u8) -> u64 {
    // At most 19 digits, which fit.
    number.wrapping_mul(10).wrapping_add(u64::from(digit & 15))
}
