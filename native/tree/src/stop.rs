//! Whether a long call goes on.
//!
//! The caller's thread sets it; workers look at it once an entry, or once every 256 KiB.  Nothing
//! says "done" after a stop.

use std::sync::atomic::{AtomicU8, Ordering};

/// Why a call ends before its work does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// A signal came, and its handler raised an exception.
    Interrupted,
    /// The deadline is over.
    OutOfTime,
}

/// What the threads of one call share.
#[derive(Debug, Default)]
pub struct Stop(AtomicU8);

impl Stop {
    /// A call that goes on.
    pub fn new() -> Self {
        Self::default()
    }

    /// End the call; the first reason stays.
    pub fn set(&self, reason: Reason) {
        let number = match reason {
            Reason::Interrupted => 1,
            Reason::OutOfTime => 2,
        };
        let _ = self
            .0
            .compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Why the call has to end, if it has to.
    pub fn reason(&self) -> Option<Reason> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(Reason::Interrupted),
            _ => Some(Reason::OutOfTime),
        }
    }
}
