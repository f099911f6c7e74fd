//! Checks that amending a snapshot gives the tree of a complete listing, and counts its changes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod model;

use std::collections::BTreeSet;

use huai_format::amend::{Amended, Amendment, amend};
use huai_format::diff::count;
use huai_format::path::{basename, parent};
use huai_format::snapshots::Snapshot;
use huai_git::error::Error;
use huai_git::object::Kind;
use huai_git::oid::Oid;
use proptest::collection::vec;
use proptest::prelude::*;

use model::{Change, Objects, planted};

const LIMIT: u64 = 1 << 20;

/// Make a change of any kind, mostly of the large directory.
fn change() -> impl Strategy<Value = Change> {
    let n = || 0..100_000_usize;
    // Most changes are in the large directory, which is the second one.
    let place = || prop_oneof![Just(1_usize), n()];
    prop_oneof![
        (place(), n(), any::<u32>()).prop_map(|(a, b, c)| Change::Write(a, b % 6000, c % 1000)),
        (place(), n()).prop_map(|(a, b)| Change::Remove(a, b)),
        (place(), n(), 0..200_usize).prop_map(|(a, b, c)| Change::Make(a, b % 6000, c)),
        n().prop_map(Change::RemoveDirectory),
        (n(), n()).prop_map(|(a, b)| Change::Swap(a, b)),
        (n(), n()).prop_map(|(a, b)| Change::Thin(a, b)),
        (place(), n()).prop_map(|(a, b)| Change::Nothing(a, b + 10_000)),
    ]
}

/// Amend a tree with the real `amend`.
fn amended(objects: &Objects, tree: Oid, amendments: &[Amendment]) -> Amended {
    let snapshot = Snapshot {
        reader: objects,
        tree,
    };
    let mut writer = objects;
    amend(&snapshot, LIMIT, amendments, &mut writer).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_tree_is_that_of_a_whole_listing(
        kind in 0..4_u8,
        rounds in vec(vec(change(), 0..8), 1..4),
    ) {
        let objects = Objects::default();
        let mut model = planted(kind);
        let mut tree = model.tree(&objects);
        for changes in rounds {
            let before = model.totals();
            let mut touched = BTreeSet::new();
            for change in changes {
                touched.extend(model.change(change));
            }
            let amended = amended(&objects, tree, &model.amendments(&touched));
            let past = Snapshot { reader: &objects, tree };
            tree = model.tree(&objects);
            if amended.ended.is_empty() {
                let (old, new) = ((past, LIMIT), (Snapshot { reader: &objects, tree }, LIMIT));
                prop_assert_eq!(Some(amended.counts), count(old, new, &|| false).unwrap());
            }
            prop_assert_eq!(amended.tree, tree);
            let after = model.totals();
            prop_assert_eq!(before.files + amended.added.files, after.files + amended.removed.files);
            prop_assert_eq!(before.bytes + amended.added.bytes, after.bytes + amended.removed.bytes);
        }
    }
}

#[test]
fn what_does_not_change_is_not_written() {
    let objects = Objects::default();
    let mut model = planted(4);
    let tree = model.tree(&objects);
    let all = objects.written.take();
    let touched = model.change(Change::Remove(1, 2000)).into_iter().collect();
    let result = amended(&objects, tree, &model.amendments(&touched));
    assert!(objects.written.take() * 5 < all);
    assert_eq!(result.tree, model.tree(&objects));
}

#[test]
fn a_name_that_was_never_there_is_told() {
    let objects = Objects::default();
    let mut model = planted(2);
    let tree = model.tree(&objects);
    let removed = model.leaf(1, 300).unwrap();
    model
        .directories
        .get_mut(parent(&removed))
        .unwrap()
        .remove(basename(&removed));
    let never = b"big/never".to_vec();
    let touched = BTreeSet::from([removed, never.clone()]);
    let result = amended(&objects, tree, &model.amendments(&touched));
    assert_eq!(result.unknown, BTreeSet::from([never]));
    assert_eq!(result.tree, model.tree(&objects));
}

#[test]
fn an_object_that_is_missing_is_asked_for_once() {
    let objects = Objects::default();
    let mut model = planted(4);
    let snapshot = Snapshot {
        reader: &objects,
        tree: model.tree(&objects),
    };
    let touched = model.change(Change::Remove(1, 2000)).into_iter().collect();
    let mut stored = objects.held.take();
    stored.retain(|_, (kind, _)| *kind == Kind::Tree);
    objects.held.replace(stored);
    let failed = amend(&snapshot, LIMIT, &model.amendments(&touched), &mut &objects);
    assert!(matches!(failed, Err(Error::Lent(_))));
    assert_eq!(objects.missed.take(), 1);
}
