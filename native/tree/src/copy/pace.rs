//! How fast content may be copied.

use std::thread;
use std::time::{Duration, Instant};

use crate::stop::Stop;

/// Between two looks at `Stop`.
const NAP: Duration = Duration::from_millis(50);

/// Bytes a second, on average since the first one.
#[derive(Debug)]
pub(crate) struct Pace {
    /// 0: as fast as it goes.
    rate: u64,
    began: Instant,
    spent: u64,
}

impl Pace {
    pub(crate) fn new(rate: u64) -> Self {
        Self {
            rate,
            began: Instant::now(),
            spent: 0,
        }
    }

    /// Waits until so many more bytes may have been copied; false after a stop.
    pub(crate) fn wait(&mut self, bytes: usize, stop: &Stop) -> bool {
        if self.rate == 0 {
            return true;
        }
        self.spent = self.spent.saturating_add(bytes as u64);
        let seconds = Duration::from_secs(self.spent / self.rate);
        let rest = (self.spent % self.rate).saturating_mul(1_000_000) / self.rate;
        let due = seconds + Duration::from_micros(rest);
        while let Some(early) = due.checked_sub(self.began.elapsed()) {
            if early.is_zero() {
                break;
            }
            if stop.is_set() {
                return false;
            }
            thread::sleep(early.min(NAP));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_ends_the_wait() {
        let (mut pace, stop) = (Pace::new(1), Stop::default());
        stop.set();
        assert!(!pace.wait(1 << 40, &stop));
    }

    #[test]
    fn without_a_rate_nobody_waits() {
        assert!(Pace::new(0).wait(usize::MAX, &Stop::default()));
    }

    #[test]
    fn what_came_before_counts() {
        let mut pace = Pace::new(1_000_000);
        let began = Instant::now();
        assert!(pace.wait(10_000, &Stop::default()) && pace.wait(10_000, &Stop::default()));
        assert!(began.elapsed() >= Duration::from_millis(15));
    }
}
