//! Times of lists as nanoseconds since the epoch.

use huai_git::cursor::Cursor;

const SECOND: i128 = 1_000_000_000;
const DIGITS: usize = 9;
/// The days of a year before each month, without a leap day.
const DAYS_BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
const SECONDS_OF_DAY: i64 = 86_400;
/// Days from year 0 of the Gregorian calendar to 1970-01-01.
const EPOCH_DAY: i64 = 719_528;

/// Parse a number of seconds, with or without a fraction of which nine digits count, to nanoseconds; `None` if malformed.
pub(crate) fn parse_decimal_time(text: &[u8]) -> Option<i128> {
    let (number, fraction) = split_fraction(text)?;
    let (is_negative, digits) = match number.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, number),
    };
    if digits.is_empty() || digits.len() > 12 {
        return None;
    }
    let time = decimal(digits)?
        .checked_mul(SECOND)?
        .checked_add(fraction)?;
    Some(if is_negative {
        time.saturating_neg()
    } else {
        time
    })
}

/// Parse seconds since the epoch as mtree and bsdtar print them to nanoseconds; `None` if malformed.  After the point
/// is the number of nanoseconds, without leading zeros.
pub(crate) fn parse_mtree_time(text: &[u8]) -> Option<i128> {
    let point = text.iter().position(|&byte| byte == b'.');
    let (seconds, rest) = text.split_at(point.unwrap_or(text.len()));
    let nanoseconds = match rest {
        [] => 0,
        [_, digits @ ..] => decimal(digits).filter(|&it| it < SECOND)?,
    };
    parse_decimal_time(seconds)?.checked_add(nanoseconds)
}

/// Parse a date and time of RFC 3339 to nanoseconds since the epoch; `None` if malformed.  Of a
/// fraction nine digits count.
pub(crate) fn parse_rfc3339_time(text: &[u8]) -> Option<i128> {
    let mut rest = Cursor::new(text);
    let [year, month, day] = fields(&mut rest, [4, 2, 2], b'-')?;
    if !matches!(rest.byte()?, b'T' | b't' | b' ') {
        return None;
    }
    let [hour, minute, second] = fields(&mut rest, [2, 2, 2], b':')?;
    let zone = rest.rest().iter().position(|byte| b"Zz+-".contains(byte))?;
    let (_, fraction) = split_fraction(&[b"0", rest.take_bytes(zone)?].concat())?;
    let offset = match rest.byte()? {
        b'Z' | b'z' => 0,
        sign => {
            let [hours, minutes] = fields(&mut rest, [2, 2], b':')?;
            let offset = hours
                .checked_mul(60)?
                .checked_add(minutes)?
                .checked_mul(60)?;
            if sign == b'-' {
                offset.checked_neg()?
            } else {
                offset
            }
        }
    };
    let is_valid = (1..=31).contains(&day) && hour < 24 && minute < 60 && second <= 60;
    if !rest.is_empty() || !is_valid {
        return None;
    }
    let seconds = days(year, month, day)?
        .checked_mul(SECONDS_OF_DAY)?
        .checked_add(hour.checked_mul(3600)?)?
        .checked_add(minute.checked_mul(60)?)?
        .checked_add(second)?
        .checked_sub(offset)?;
    i128::from(seconds)
        .checked_mul(SECOND)?
        .checked_add(fraction)
}

/// Take numbers of so many digits, with a separator between each two; `None` for other text.
fn fields<const N: usize>(
    rest: &mut Cursor<'_>,
    digits: [usize; N],
    separator: u8,
) -> Option<[i64; N]> {
    let mut numbers = [0; N];
    let mut is_first = true;
    for (number, count) in numbers.iter_mut().zip(digits) {
        if !is_first && rest.byte()? != separator {
            return None;
        }
        is_first = false;
        *number = i64::try_from(decimal(rest.take_bytes(count)?)?).ok()?;
    }
    Some(numbers)
}

/// Return the days from the epoch to a date, also of a day after the month's end; `None` for
/// another month.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let month_index = usize::try_from(month.checked_sub(1)?).ok()?;
    let in_year = DAYS_BEFORE
        .get(month_index)?
        .checked_add(day)?
        .checked_sub(1)?;
    let leap_day = i64::from(is_leap && month > 2);
    // The leap days of the years before, year 0 included.
    let past = year.checked_sub(1)?;
    let leap_days = past
        .div_euclid(4)
        .checked_sub(past.div_euclid(100))?
        .checked_add(past.div_euclid(400))?
        .checked_add(1)?;
    year.checked_mul(365)?
        .checked_add(leap_days)?
        .checked_add(in_year)?
        .checked_add(leap_day)?
        .checked_sub(EPOCH_DAY)
}

/// Split a number from its fraction, which is returned in nanoseconds; `None` if malformed.
fn split_fraction(text: &[u8]) -> Option<(&[u8], i128)> {
    let Some(point) = text.iter().position(|&byte| byte == b'.') else {
        return Some((text, 0));
    };
    let (number, fraction) = text.split_at_checked(point)?;
    let digits = fraction.get(1..)?;
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let mut nine = [b'0'; DIGITS];
    for (place, digit) in nine.iter_mut().zip(digits) {
        *place = *digit;
    }
    Some((number, decimal(&nine)?))
}

/// Parse decimal digits to a number; `None` for any other text.
fn decimal(digits: &[u8]) -> Option<i128> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(digits).ok().filter(|_| is_number)?;
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        let cases: [(&str, i128); 9] = [
            ("1970-01-01T00:00:00Z", 0),
            ("1969-12-31T23:59:59.5Z", -500_000_000),
            ("2000-02-29T12:00:00.000000001Z", 951_825_600_000_000_001),
            ("2000-03-01T00:00:00Z", 951_868_800_000_000_000),
            ("2026-11-26T18:30:00+01:30", 1_795_712_400_000_000_000),
            ("2026-11-26t17:00:00-00:00", 1_795_712_400_000_000_000),
            ("1900-03-01T00:00:00Z", -2_203_891_200_000_000_000),
            ("2400-12-31T00:00:00Z", 13_601_001_600_000_000_000),
            ("2026-01-01T00:00:00.1234567899Z", 1_767_225_600_123_456_789),
        ];
        for (text, time) in cases {
            assert_eq!(parse_rfc3339_time(text.as_bytes()), Some(time), "{text}");
        }
        for text in [
            "",
            "2026-01-01",
            "2026-01-01T00:00:00",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00Zx",
            "2026-01-01T24:00:00Z",
            "+026-01-01T00:00:00Z",
            "2026-01-01T00:00:00+1:00",
        ] {
            assert_eq!(parse_rfc3339_time(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn numbers() {
        let cases: [(&str, Option<i128>); 7] = [
            ("1700000000.000000005", Some(1_700_000_000_000_000_005)),
            ("-1.5", Some(-1_500_000_000)),
            ("0", Some(0)),
            ("1e9", None),
            ("", None),
            ("1.", None),
            ("9999999999999", None),
        ];
        for (text, time) in cases {
            assert_eq!(parse_decimal_time(text.as_bytes()), time, "{text}");
        }
    }
}
