//! Whether a long call goes on.

use std::sync::atomic::{AtomicBool, Ordering};

/// What the threads of one call share.  The caller's thread sets it; workers look at it once an
/// entry.  Nothing says "done" after a stop.
#[derive(Debug, Default)]
pub struct Stop(AtomicBool);

impl Stop {
    /// Ends the call.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the call has to end.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
