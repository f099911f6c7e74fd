//! Splits text that arrives in parts into lines.

use huai_format::limits::LINE_BYTES;
use huai_git::error::{Error, Result};

/// The beginning of a line of which the rest has not arrived.
#[derive(Debug, Default)]
pub(crate) struct Lines(Vec<u8>);

impl Lines {
    /// Call `found` with each line that ends in `part`, without its end; an error for one that is
    /// too long.
    pub(crate) fn feed(
        &mut self,
        part: &[u8],
        mut found: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut lines = part.split(|&byte| byte == b'\n');
        let last = lines.next_back().unwrap_or_default();
        for line in lines {
            if self.0.is_empty() {
                check_length(line)?;
                found(line)?;
            } else {
                self.0.extend_from_slice(line);
                check_length(&self.0)?;
                found(&std::mem::take(&mut self.0))?;
            }
        }
        self.0.extend_from_slice(last);
        check_length(&self.0)
    }

    /// Return true if no line is incomplete.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Return an error for a line of more than `LINE_BYTES`.
fn check_length(line: &[u8]) -> Result<()> {
    if line.len() > LINE_BYTES {
        return Err(Error::new("the list has a line that is too long"));
    }
    Ok(())
}
