//! How fast, and until when, content may be read.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

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

    /// The age at which what was spent so far is within the rate, or the time is over.
    pub(crate) fn due(&self) -> Duration {
        let due = self.within_rate();
        self.most.map_or(due, |most| due.min(most))
    }

    /// How long it is until this age; None: it is reached.
    pub(crate) fn until(&self, age: Duration) -> Option<Duration> {
        let early = age.checked_sub(self.began.elapsed());
        early.filter(|early| !early.is_zero())
    }

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
