//! Limits the rate and the time of reading content.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A limit of bytes per second, on average since the beginning, and a deadline.
#[derive(Debug)]
pub struct Pace {
    /// The bytes per second; 0 for no limit.
    rate: u64,
    began: Instant,
    /// The duration until the deadline, if there is one.
    most: Option<Duration>,
    spent: AtomicU64,
}

impl Pace {
    /// Begin now: at most `rate` bytes per second, 0 for no limit, and for at most `most`.
    pub fn new(rate: u64, most: Option<Duration>) -> Self {
        Self {
            rate,
            began: Instant::now(),
            most,
            spent: AtomicU64::new(0),
        }
    }

    /// Return true if the time is over.
    pub fn is_over(&self) -> bool {
        self.most.is_some_and(|most| self.began.elapsed() >= most)
    }

    /// Count bytes that were read, or are about to be.
    pub fn spend(&self, bytes: usize) {
        self.spent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Return the duration from the beginning after which the bytes so far are within the rate, or the time is over.
    pub fn due(&self) -> Duration {
        let due = self.within_rate();
        self.most.map_or(due, |most| due.min(most))
    }

    /// Return the time that is left until `age`, a duration from the beginning; `None` if it has passed.
    pub fn until(&self, age: Duration) -> Option<Duration> {
        let early = age.checked_sub(self.began.elapsed());
        early.filter(|early| !early.is_zero())
    }

    /// Return how long the spent bytes take at the rate; no time without a rate.
    fn within_rate(&self) -> Duration {
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
