//! The leaves of a directory: those of the snapshot, merged with an amendment.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use huai_git::error::Result;
use huai_git::find::split_before;

use crate::amend::amendment::Amendment;
use crate::amend::leaves::{Fields, Leaf, LeafReader};
use crate::entries::digests::is_zero;
use crate::limits::DIGEST_BYTES;
use crate::snapshots;
use crate::write::{Counts, decimal, is_file};

/// The new leaves of a directory.
pub(super) struct Merged {
    pub(super) lines: Vec<u8>,
    /// 32 bytes for each file, zeros where absent; empty if all are absent.
    pub(super) digests: Vec<u8>,
    /// The names in `gone` that the snapshot has as leaves.
    pub(super) found: BTreeSet<Vec<u8>>,
    /// The leaves that changed.
    pub(super) counts: Counts,
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
            counts: Counts::default(),
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
        let (old, new) = (old.map(|it| it.fields()), new.map(|it| it.fields()));
        let unlinked;
        let result = if amendment.unsure.contains(&name) {
            // Its leader may have changed.
            unlinked = old.map(|(line, digest)| (without_link(line), digest));
            unlinked.as_ref().map(|(line, digest)| (&**line, *digest))
        } else if new.is_some() {
            new
        } else if amendment.gone.contains(&name) {
            self.found.insert(name);
            None
        } else {
            old.filter(|_| !amendment.is_whole && !amendment.directories.contains(&name))
        };
        self.count(old, result);
        if let Some((line, digest)) = result {
            self.push(line, digest);
        }
    }

    /// Count the leaf of one name if it changed from `old` to `new`.  A digest that only one side has does not count.
    fn count(&mut self, old: Option<Fields<'_>>, new: Option<Fields<'_>>) {
        let is_same = match (old, new) {
            (Some(old), Some(new)) => {
                let digests = old.1.zip(new.1);
                let differ = |(one, other)| one != other && !is_zero(one) && !is_zero(other);
                old.0 == new.0 && !digests.is_some_and(differ)
            }
            (old, new) => old.is_none() && new.is_none(),
        };
        if !is_same {
            self.counts.add(old.is_some(), new.is_some());
            let new_bytes = new.map_or(0, |new| new_bytes(old, new));
            self.counts.new_bytes = self.counts.new_bytes.saturating_add(new_bytes);
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

/// Return what `diff::count` counts as new bytes for one leaf.
fn new_bytes(old: Option<Fields<'_>>, new: Fields<'_>) -> u64 {
    let Some((size, time)) = size_and_time(new.0) else {
        return 0;
    };
    let is_stated = |digest: Option<&'_ [u8]>| digest.is_some_and(|digest| !is_zero(digest));
    let is_same = old.is_some_and(|old| match size_and_time(old.0) {
        Some((former_size, _)) if former_size != size => false,
        Some(_) if is_stated(old.1) && is_stated(new.1) => old.1 == new.1,
        Some((_, former_time)) => former_time == time,
        None => false,
    });
    if is_same { 0 } else { decimal(size) }
}

/// Return the columns with the size and the time of a file; `None` for a symlink.
fn size_and_time(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let fields = split_before(line, b'\t').1;
    if !is_file(fields) {
        return None;
    }
    let mut columns = fields.split(|byte| matches!(byte, b'\t' | b'\n')).skip(1);
    columns.next().zip(columns.next())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::RelPath;

    #[test]
    fn a_digest_of_one_side_does_not_count() {
        let line = &b"a\t1\t2\n"[..];
        let [one, other, absent] = [1, 2, 0].map(|byte| [byte; DIGEST_BYTES]);
        let changed = |old: &[u8], new: &[u8]| {
            let past = snapshots::Listing {
                path: RelPath::root(),
                attributes: b"1".to_vec().into(),
                leaves: line.to_vec().into(),
                digests: old.to_vec().into(),
            };
            let mut after = LeafReader::new(line, new).unwrap();
            let merged = Merged::of(&past, &mut after, None, &Amendment::default()).unwrap();
            merged.counts.changed
        };
        assert_eq!(changed(&one, &other), 1);
        assert_eq!(changed(&one, &absent) + changed(&absent, &one), 0);
        assert_eq!(changed(&one, &[]) + changed(&one, &one), 0);
    }

    #[test]
    fn a_line_loses_its_link_and_nothing_else() {
        let line = b"hello\t1\t2\tm600\tuhans\th../hase\n";
        assert_eq!(without_link(line), b"hello\t1\t2\tm600\tuhans\n");
        assert_eq!(without_link(b"h\t>h\t2\n"), b"h\t>h\t2\n");
    }
}
