//! Checks changes of a tree: amending its snapshot gives the tree of a complete listing.

use std::collections::BTreeSet;

use huai_format::amend::amend;
use huai_format::snapshots::Snapshot;

use super::model::{Change, Objects, planted};

/// The most changes of one input, and of one amendment.
const CHANGES: usize = 24;
const AT_ONCE: usize = 8;

/// Check that amending a tree gives that of a complete listing, for an input of the kind of the
/// tree, then changes of six bytes each.
pub(crate) fn amending(data: &[u8]) {
    let Some((kind, steps)) = data.split_first() else {
        return;
    };
    // Most trees are small, so that more of them are tried.
    let mut model = planted(if *kind < 8 { kind % 5 } else { 5 });
    let objects = Objects::default();
    let mut tree = model.tree(&objects);
    let changes: Vec<_> = steps.chunks_exact(6).take(CHANGES).map(change).collect();
    for round in changes.chunks(AT_ONCE) {
        let before = model.totals();
        let mut touched = BTreeSet::new();
        for change in round {
            touched.extend(model.change(*change));
        }
        let snapshot = Snapshot {
            reader: &objects,
            tree,
        };
        let amendments = model.amendments(&touched);
        let amended = amend(&snapshot, 1 << 20, &amendments, &mut &objects).unwrap();
        tree = model.tree(&objects);
        assert_eq!(amended.tree, tree, "{round:?}");
        let after = model.totals();
        let (more, less) = (amended.added, amended.removed);
        assert_eq!(before.files + more.files, after.files + less.files);
        assert_eq!(before.bytes + more.bytes, after.bytes + less.bytes);
    }
}

/// Parse a change of six bytes: its kind, two numbers of two bytes each, and a small one.
fn change(step: &[u8]) -> Change {
    let number = |at: usize| usize::from(u16::from_le_bytes([step[at], step[at + 1]]));
    let (a, b, c) = (number(1), number(3), usize::from(step[5]));
    match step[0] % 7 {
        0 => Change::Write(a, b % 6000, step[5].into()),
        1 => Change::Remove(a, b),
        2 => Change::Make(a, b % 6000, c % 200),
        3 => Change::RemoveDirectory(a),
        4 => Change::Swap(a, b),
        5 => Change::Thin(a, b),
        _ => Change::Nothing(a, b + 10_000),
    }
}
