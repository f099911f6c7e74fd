//! Cancels a long call.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use super::pace::Pace;
use super::progress;

/// The longest sleep between two checks of `is_set`.
const NAP: Duration = Duration::from_millis(50);

/// The cancellation state that the threads of one call share.  The caller's thread sets it;
/// workers check it once per entry.  Nothing reports success after a stop.
#[derive(Debug, Default)]
pub struct Stop {
    is_set: AtomicBool,
    pace: OnceLock<Arc<Pace>>,
}

impl Stop {
    /// Tell all threads of the call to end.
    pub fn set(&self) {
        self.is_set.store(true, Ordering::Relaxed);
    }

    /// Return true if the call has to end.
    pub fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Relaxed)
    }

    /// Limit the reading of content to `pace`, for all threads together, unless a pace was set before.
    pub fn hold_to(&self, pace: &Arc<Pace>) {
        // A call has one pace, which is set before it reads.
        let _first = self.pace.get_or_init(|| Arc::clone(pace));
    }

    /// Return true if no time is left to read content.
    pub fn is_late(&self) -> bool {
        self.pace.get().is_some_and(|pace| pace.is_over())
    }

    /// Wait until more content may be read; false after a stop, or when the time is over.
    pub fn wait_to_read(&self) -> bool {
        !self.is_set() && self.pace.get().is_none_or(|pace| self.wait_for(pace))
    }

    /// Wait until the bytes of `pace` are within its rate; false after a stop while it waits, or when its time is
    /// over.
    pub fn wait_for(&self, pace: &Pace) -> bool {
        let due = pace.due();
        while let Some(early) = pace.until(due) {
            if self.is_set() {
                return false;
            }
            thread::sleep(early.min(NAP));
        }
        !pace.is_over()
    }

    /// Count bytes of content that were read.
    pub fn count_read(&self, bytes: usize) {
        progress::count_bytes(bytes);
        if let Some(pace) = self.pace.get() {
            pace.spend(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_stop_ends_the_wait() {
        let (pace, stop) = (Pace::new(1, None), Stop::default());
        pace.spend(1 << 40);
        stop.set();
        assert!(!stop.wait_for(&pace));
    }

    #[test]
    fn without_a_rate_nobody_waits() {
        let pace = Pace::new(0, None);
        pace.spend(usize::MAX);
        assert!(Stop::default().wait_for(&pace));
    }

    #[test]
    fn what_came_before_counts() {
        let pace = Pace::new(1_000_000, None);
        let began = Instant::now();
        pace.spend(10_000);
        pace.spend(10_000);
        assert!(Stop::default().wait_for(&pace));
        assert!(began.elapsed() >= Duration::from_millis(15));
    }

    #[test]
    fn the_end_of_the_time_ends_the_wait() {
        let pace = Pace::new(1, Some(Duration::from_millis(20)));
        assert!(!pace.is_over());
        pace.spend(1 << 40);
        assert!(!Stop::default().wait_for(&pace));
        assert!(pace.is_over());
    }
}
