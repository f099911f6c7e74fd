//! Whether a long call goes on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::pace::Pace;

/// What the threads of one call share.  The caller's thread sets it; workers look at it once an
/// entry.  Nothing says "done" after a stop.
#[derive(Debug, Default)]
pub struct Stop {
    is_set: AtomicBool,
    pace: OnceLock<Arc<Pace>>,
}

impl Stop {
    /// Ends the call.
    pub fn set(&self) {
        self.is_set.store(true, Ordering::Relaxed);
    }

    /// Whether the call has to end.
    pub fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Relaxed)
    }

    /// From now on content is read within `pace`, for all threads together.
    pub fn hold_to(&self, pace: &Arc<Pace>) {
        // A call has one pace, which is set before it reads.
        let _first = self.pace.get_or_init(|| Arc::clone(pace));
    }

    /// Whether there is no more time to read content.
    pub(crate) fn is_late(&self) -> bool {
        self.pace.get().is_some_and(|pace| pace.is_over())
    }

    /// Waits until more content may be read; false if none may be.
    pub(crate) fn may_read(&self) -> bool {
        !self.is_set() && self.pace.get().is_none_or(|pace| pace.wait(self))
    }

    /// So many bytes of content were read.
    pub(crate) fn has_read(&self, bytes: usize) {
        if let Some(pace) = self.pace.get() {
            pace.spend(bytes);
        }
    }
}
