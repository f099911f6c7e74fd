//! A part of a text, which stays in memory as long as any part of it is used.

use std::ops::Deref;
use std::sync::Arc;

/// Reference-counted bytes.
#[derive(Debug, Clone, Default)]
pub struct Shared {
    whole: Arc<Vec<u8>>,
    from: usize,
    to: usize,
}

impl Shared {
    /// Return the bytes from `from` up to `to` without a copy; those that do not exist are left
    /// out.
    #[must_use]
    pub fn part(&self, from: usize, to: usize) -> Self {
        let begin = self.from.saturating_add(from).min(self.to);
        Self {
            whole: Arc::clone(&self.whole),
            from: begin,
            to: self.from.saturating_add(to).clamp(begin, self.to),
        }
    }
}

impl From<Vec<u8>> for Shared {
    fn from(whole: Vec<u8>) -> Self {
        let to = whole.len();
        Self {
            whole: Arc::new(whole),
            from: 0,
            to,
        }
    }
}

impl Deref for Shared {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.whole.get(self.from..self.to).unwrap_or_default()
    }
}
