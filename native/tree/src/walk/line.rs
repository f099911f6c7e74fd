//! Formats numbers in a line (FORMAT.md, "Lines").

use huai_format::entries::attributes;
pub(crate) use huai_format::entries::attributes::{put_decimal, put_mode};
use huai_git::bug::fit;
use huai_sys::call::Time;

const BILLION: i64 = 1_000_000_000;

/// The most bytes of `put_time`, `put_mode` and a size together, with their tabs.
pub(crate) const FIXED: usize = 64;

/// Append the time as a line states it.
pub(crate) fn put_time(line: &mut Vec<u8>, time: Time) {
    attributes::put_time(line, time.seconds, time.nanoseconds);
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
