//! Formats numbers in a line (FORMAT.md, "Lines").

use huai_git::bug::fit;
use huai_sys::call::Time;

const BILLION: i64 = 1_000_000_000;

/// The most bytes of `put_time`, `put_mode` and a size together, with their tabs.
pub(crate) const FIXED: usize = 64;

/// Append a number without leading zeros.
pub(crate) fn put_decimal(line: &mut Vec<u8>, mut value: u64) {
    let begin = line.len();
    loop {
        line.push(b'0' + low_byte(value % 10));
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
pub(crate) fn put_time(line: &mut Vec<u8>, time: Time) {
    if time.seconds < 0 {
        line.push(b'-');
    }
    put_decimal(line, time.seconds.unsigned_abs());
    if time.nanoseconds == 0 {
        return;
    }
    line.push(b'.');
    let (mut rest, mut unit) = (time.nanoseconds, 100_000_000);
    while rest > 0 {
        line.push(b'0' + low_byte(u64::from(rest / unit)));
        rest %= unit;
        unit /= 10;
    }
}

fn low_byte(value: u64) -> u8 {
    value.to_le_bytes()[0]
}

/// Append the mode's field, unless it has the usual value.
pub(crate) fn put_mode(line: &mut Vec<u8>, mode: u32, usual: u16) {
    if mode == u32::from(usual) {
        return;
    }
    line.extend_from_slice(b"\tm");
    let mut shift = 9;
    while shift > 0 && mode >> shift == 0 {
        shift -= 3;
    }
    loop {
        line.push(b'0' + low_byte(u64::from(mode >> shift & 7)));
        if shift == 0 {
            return;
        }
        shift -= 3;
    }
}

/// Return nanoseconds since the epoch, if they fit.
pub(crate) fn nanoseconds(time: Time) -> Option<i64> {
    time.seconds
        .checked_mul(BILLION)?
        .checked_add(i64::from(time.nanoseconds))
        .filter(|value| *value != i64::MIN)
}

/// Return nanoseconds since the epoch, or the nearest value that fits.
pub(crate) fn nearest_nanoseconds(time: Time) -> i64 {
    nanoseconds(time).unwrap_or(if time.seconds < 0 {
        -i64::MAX
    } else {
        i64::MAX
    })
}

/// Return the time itself, or the nearest one that fits.
pub(crate) fn nearest(time: Time) -> Time {
    let value = nearest_nanoseconds(time);
    Time {
        seconds: value.div_euclid(BILLION),
        nanoseconds: fit(value.rem_euclid(BILLION)),
    }
}
