//! What a call may still spend.  It is handed down by `&mut`, and has no default.

use crate::error::{Error, Result};

/// Counts what is inflated and made, and asks whether to go on.
pub struct Budget<'a> {
    left: u64,
    stopped: &'a dyn Fn() -> bool,
}

impl<'a> Budget<'a> {
    /// `work` in bytes; `stopped` says whether the call has to end, and is asked often.
    pub fn new(work: u64, stopped: &'a dyn Fn() -> bool) -> Self {
        Self {
            left: work,
            stopped,
        }
    }

    /// Say that as much is about to be done as making `bytes` by inflation.
    pub fn spend(&mut self, bytes: u64) -> Result<()> {
        self.left = self
            .left
            .checked_sub(bytes)
            .ok_or_else(|| Error::new("a pack that unfolds to more than the limit"))?;
        self.check()
    }

    /// Only ask whether to go on.
    pub fn check(&self) -> Result<()> {
        if (self.stopped)() {
            return Err(Error::Stopped);
        }
        Ok(())
    }

    /// What is left of the work.
    pub fn left(&self) -> u64 {
        self.left
    }
}
