//! How fast, and until when, content may be read.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::stop::Stop;

/// Between two looks at `Stop`.
const NAP: Duration = Duration::from_millis(50);

/// Bytes a second, on average since the beginning, and a time that ends it.
#[derive(Debug)]
pub struct Pace {
    /// 0: as fast as it goes.
    rate: u64,
    began: Instant,
    /// None: there is no end.
    most: Option<Duration>,
    spent: AtomicU64,
}

impl Pace {
    /// From now on; for `most` at the longest, if that is given.
    pub fn new(rate: u64, most: Option<Duration>) -> Self {
        Self {
            rate,
            began: Instant::now(),
            most,
            spent: AtomicU64::new(0),
        }
    }

    /// Whether the time is over.
    pub fn is_over(&self) -> bool {
        self.most.is_some_and(|most| self.began.elapsed() >= most)
    }

    /// So many more bytes were read, or are about to be.
    pub(crate) fn spend(&self, bytes: usize) {
        self.spent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Waits until what was spent is within the rate; false after a stop, and when the time is
    /// over.
    pub(crate) fn wait(&self, stop: &Stop) -> bool {
        let due = self.due();
        let due = self.most.map_or(due, |most| due.min(most));
        while let Some(early) = due.checked_sub(self.began.elapsed()) {
            if early.is_zero() {
                break;
            }
            if stop.is_set() {
                return false;
            }
            thread::sleep(early.min(NAP));
        }
        !self.is_over()
    }

    fn due(&self) -> Duration {
        let spent = self.spent.load(Ordering::Relaxed);
        let (Some(seconds), Some(rest)) =
            (spent.checked_div(self.rate), spent.checked_rem(self.rate))
        else {
            return Duration::ZERO;
        };
        let rest = rest.saturating_mul(1_000_000) / self.rate;
        Duration::from_secs(seconds) + Duration::from_micros(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_ends_the_wait() {
        let (pace, stop) = (Pace::new(1, None), Stop::default());
        pace.spend(1 << 40);
        stop.set();
        assert!(!pace.wait(&stop));
    }

    #[test]
    fn without_a_rate_nobody_waits() {
        let pace = Pace::new(0, None);
        pace.spend(usize::MAX);
        assert!(pace.wait(&Stop::default()));
    }

    #[test]
    fn what_came_before_counts() {
        let pace = Pace::new(1_000_000, None);
        let began = Instant::now();
        pace.spend(10_000);
        pace.spend(10_000);
        assert!(pace.wait(&Stop::default()));
        assert!(began.elapsed() >= Duration::from_millis(15));
    }

    #[test]
    fn the_end_of_the_time_ends_the_wait() {
        let pace = Pace::new(1, Some(Duration::from_millis(20)));
        assert!(!pace.is_over());
        pace.spend(1 << 40);
        assert!(!pace.wait(&Stop::default()));
        assert!(pace.is_over());
    }
}
