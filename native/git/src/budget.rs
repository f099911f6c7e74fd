//! The work that a call may still do.  It is passed down by `&mut`, and has no default.

use crate::error::{Error, Result};

/// A counter of inflated and computed bytes, with a check for cancellation.
pub struct Budget<'a> {
    left: u64,
    stopped: &'a dyn Fn() -> bool,
}

impl<'a> Budget<'a> {
    /// Allow `work` bytes; `stopped` returns true if the call has to end, and is called often.
    pub fn new(work: u64, stopped: &'a dyn Fn() -> bool) -> Self {
        Self {
            left: work,
            stopped,
        }
    }

    /// Spend work that takes as long as inflating `bytes`; an error if too little is left, or `Stopped`.
    pub fn spend(&mut self, bytes: u64) -> Result<()> {
        self.left = self
            .left
            .checked_sub(bytes)
            .ok_or_else(|| Error::new("a pack that unfolds to more than the limit"))?;
        self.check()
    }

    /// Fail with `Stopped` if the call has to end.
    pub fn check(&self) -> Result<()> {
        if (self.stopped)() {
            return Err(Error::Stopped);
        }
        Ok(())
    }

    /// Return the remaining work in bytes.
    pub fn left(&self) -> u64 {
        self.left
    }
}
