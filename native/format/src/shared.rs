//! A part of a text that others hold parts of as well.

use std::ops::Deref;
use std::sync::Arc;

/// Bytes that are held as long as anybody has a part of them.
#[derive(Debug, Clone, Default)]
pub struct Shared {
    whole: Arc<Vec<u8>>,
    from: usize,
    to: usize,
}

impl Shared {
    /// The bytes of this part that stand at `from` and before `to`; none if it has no such.
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
