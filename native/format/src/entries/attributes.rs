//! Writes attributes as a line spells them (FORMAT.md, "Lines"); `fields` reads them.

use std::num::NonZero;

use super::entry::ROOT_OWNER;
use crate::escape::put_escaped;

/// Append a number without leading zeros.
pub fn put_decimal(line: &mut Vec<u8>, mut value: u64) {
    let begin = line.len();
    loop {
        line.push(digit(value % 10));
        value /= 10;
        if value == 0 {
            break;
        }
    }
    if let Some(digits) = line.get_mut(begin..) {
        digits.reverse();
    }
}

/// Append the seconds, rounded down, and the rest as a decimal fraction without trailing zeros.
pub fn put_time(line: &mut Vec<u8>, seconds: i64, nanoseconds: u32) {
    if seconds < 0 {
        line.push(b'-');
    }
    put_decimal(line, seconds.unsigned_abs());
    if nanoseconds == 0 {
        return;
    }
    line.push(b'.');
    let (mut rest, mut unit) = (nanoseconds, NonZero::new(100_000_000));
    while let Some(divisor) = unit.filter(|_| rest > 0) {
        line.push(digit(u64::from(rest / divisor)));
        rest %= divisor;
        unit = NonZero::new(divisor.get() / 10);
    }
}

/// Append the mode's field, in octal, unless it has the usual value.
pub fn put_mode(line: &mut Vec<u8>, mode: u32, usual: u16) {
    if mode == u32::from(usual) {
        return;
    }
    line.extend_from_slice(b"\tm");
    let mut is_leading = true;
    for shift in [9, 6, 3, 0] {
        is_leading &= shift > 0 && mode >> shift == 0;
        if !is_leading {
            line.push(digit(u64::from(mode >> shift & 7)));
        }
    }
}

/// Append the fields of a user and a group, unless they are root.
pub fn put_owners(line: &mut Vec<u8>, user: &[u8], group: &[u8]) {
    for (field, name) in [(b"\tu", user), (b"\tg", group)] {
        if name != ROOT_OWNER {
            line.extend_from_slice(field);
            put_escaped(line, name);
        }
    }
}

fn digit(value: u64) -> u8 {
    let [low, ..] = value.to_le_bytes();
    b'0' | low
}
