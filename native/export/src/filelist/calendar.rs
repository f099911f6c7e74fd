//! Converts times to the proleptic Gregorian calendar, in UTC.

const DAY: i64 = 86_400;
/// The days of 400 years, after which the calendar repeats.
const ERA: i64 = 146_097;
/// The days from 1 March of the year 0 to 1 January 1970.
const EPOCH: i64 = 719_468;

/// A date and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) year: i64,
    /// 0 is January.
    pub(super) month: i64,
    /// 1 to 31.
    pub(super) day: i64,
    pub(super) hour: i64,
    pub(super) minute: i64,
}

/// Return the date and time, to the minute, at `seconds` from the epoch, which may be negative.
pub(super) fn moment(seconds: i64) -> Moment {
    // Years begin with March here, so that the leap day comes last.
    let days = seconds.div_euclid(DAY).saturating_add(EPOCH);
    let (era, day) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let leaps = minus(
        plus(day.div_euclid(1_460), day.div_euclid(146_096)),
        day.div_euclid(36_524),
    );
    let year = minus(day, leaps).div_euclid(365);
    let before = plus(
        year.saturating_mul(365),
        minus(year.div_euclid(4), year.div_euclid(100)),
    );
    let day = minus(day, before);
    let month = plus(day.saturating_mul(5), 2).div_euclid(153);
    let begins = plus(month.saturating_mul(153), 2).div_euclid(5);
    let second = seconds.rem_euclid(DAY);
    Moment {
        year: plus(plus(era.saturating_mul(400), year), i64::from(month >= 10)),
        month: plus(month, 2).rem_euclid(12),
        day: plus(minus(day, begins), 1),
        hour: second.div_euclid(3_600),
        minute: second.rem_euclid(3_600).div_euclid(60),
    }
}

fn plus(one: i64, other: i64) -> i64 {
    one.saturating_add(other)
}

fn minus(one: i64, other: i64) -> i64 {
    one.saturating_sub(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(seconds: i64) -> (i64, i64, i64, i64, i64) {
        let date = moment(seconds);
        (date.year, date.month, date.day, date.hour, date.minute)
    }

    #[test]
    fn days_before_and_after_the_epoch_are_named() {
        assert_eq!(fields(0), (1970, 0, 1, 0, 0));
        assert_eq!(fields(-1), (1969, 11, 31, 23, 59));
        assert_eq!(fields(951_782_400), (2000, 1, 29, 0, 0));
        assert_eq!(fields(951_868_799), (2000, 1, 29, 23, 59));
        assert_eq!(fields(951_868_800), (2000, 2, 1, 0, 0));
        assert_eq!(fields(-2_203_891_200), (1900, 2, 1, 0, 0));
        assert_eq!(fields(4_107_542_399), (2100, 1, 28, 23, 59));
        assert_eq!(fields(4_107_542_400), (2100, 2, 1, 0, 0));
        assert_eq!(fields(-9_223_372_037), (1677, 8, 21, 0, 12));
        assert_eq!(fields(9_223_372_036), (2262, 3, 11, 23, 47));
    }
}
