//! The leaves of a directory: those of the snapshot, merged with an amendment.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use huai_git::error::Result;
use huai_git::find::split_before;

use crate::amend::amendment::Amendment;
use crate::amend::leaves::{Leaf, LeafReader};
use crate::entries::digests::is_zero;
use crate::limits::DIGEST_BYTES;
use crate::snapshots;
use crate::write::is_file;

/// The new leaves of a directory.
pub(super) struct Merged {
    pub(super) lines: Vec<u8>,
    /// 32 bytes for each file, zeros where absent; empty if all are absent.
    pub(super) digests: Vec<u8>,
    /// The names in `gone` that the snapshot has as leaves.
    pub(super) found: BTreeSet<Vec<u8>>,
}

impl Merged {
    /// Merge `past`, leaves of the snapshot, with the next ones of the amendment, which `after` reads:
    /// those with names before `until`, or all.
    pub(super) fn of(
        past: &snapshots::Listing,
        after: &mut LeafReader<'_>,
        until: Option<&[u8]>,
        amendment: &Amendment,
    ) -> Result<Self> {
        let mut merged = Self {
            lines: Vec::new(),
            digests: Vec::new(),
            found: BTreeSet::new(),
        };
        let mut before = LeafReader::new(&past.leaves, &past.digests)?;
        loop {
            let due = after.leaf.as_ref();
            let due = due.filter(|leaf| until.is_none_or(|until| *leaf.name < *until));
            let order = match (&before.leaf, due) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(old), Some(new)) => old.name.cmp(&new.name),
            };
            let old = before.take_if(order.is_le())?;
            let new = after.take_if(order.is_ge())?;
            merged.add(old, new, amendment);
        }
        if is_zero(&merged.digests) {
            merged.digests.clear();
        }
        Ok(merged)
    }

    /// Add the leaf of one name: in an unknown state only the old one, without its link; else the new one; else the
    /// old one unless it is gone, is now a directory, or the amendment is whole.  An old one that is gone is noted in
    /// `found`.
    fn add(&mut self, old: Option<Leaf<'_>>, new: Option<Leaf<'_>>, amendment: &Amendment) {
        let name = old.as_ref().or(new.as_ref()).map(|leaf| leaf.name.clone());
        let name = name.unwrap_or_default();
        if amendment.unsure.contains(&name) {
            // Its leader may have changed.
            if let Some(old) = old {
                self.push(&without_link(old.line), old.digest);
            }
        } else if let Some(new) = new {
            self.push(new.line, new.digest);
        } else if let Some(old) = old {
            if amendment.gone.contains(&name) {
                self.found.insert(name);
            } else if !amendment.is_whole && !amendment.directories.contains(&name) {
                self.push(old.line, old.digest);
            }
        }
    }

    /// Append a line and, for a file, its digest: zeros without one.
    fn push(&mut self, line: &[u8], digest: Option<&[u8]>) {
        self.lines.extend_from_slice(line);
        if is_file(split_before(line, b'\t').1) {
            let digest = digest.unwrap_or(&[0; DIGEST_BYTES]);
            self.digests.extend_from_slice(digest);
        }
    }
}

/// Return a line without its hardlink field.
fn without_link(line: &[u8]) -> Vec<u8> {
    let mut fields = line
        .strip_suffix(b"\n")
        .unwrap_or(line)
        .split(|&byte| byte == b'\t');
    let first: Vec<_> = fields.by_ref().take(3).collect();
    let rest = fields.filter(|field| !field.starts_with(b"h"));
    let remaining: Vec<_> = first.into_iter().chain(rest).collect();
    let mut line = remaining.join(&b'\t');
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_loses_its_link_and_nothing_else() {
        let line = b"hello\t1\t2\tm600\tuhans\th../hase\n";
        assert_eq!(without_link(line), b"hello\t1\t2\tm600\tuhans\n");
        assert_eq!(without_link(b"h\t>h\t2\n"), b"h\t>h\t2\n");
    }
}
