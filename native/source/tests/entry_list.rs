//! Checks the trees that lists become, and what they change of a snapshot.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../format/tests/model/mod.rs"]
mod model;

use std::io::Cursor;

use huai_format::amend::Amended;
use huai_format::snapshots::{EntryLimit, Snapshot, Walk};
use huai_format::walks::check_hardlinks;
use huai_git::error::Result;
use huai_git::oid::Oid;
use huai_source::entry::{EntryType, ListEntry};
use huai_source::entry_list::EntryList;

use model::Objects;

const LIMIT: u64 = 100;

type List = EntryList<Cursor<Vec<u8>>>;

fn list(entries: &[ListEntry]) -> List {
    let mut list = List::new(Cursor::default(), LIMIT);
    for entry in entries {
        list.add(entry.clone()).unwrap();
    }
    list
}

fn entry(kind: EntryType, path: &str, mode: u16) -> ListEntry {
    ListEntry {
        path: path.into(),
        kind,
        size: 0,
        mtime: 1_000_000_000,
        mode,
        owner: (0, 0),
        target: Vec::new(),
        group: None,
        digest: None,
    }
}

fn file(path: &str, size: u64) -> ListEntry {
    ListEntry {
        size,
        ..entry(EntryType::File, path, 0o644)
    }
}

fn link(path: &str, group: u32) -> ListEntry {
    ListEntry {
        group: Some(group),
        ..file(path, 7)
    }
}

fn directory(path: &str) -> ListEntry {
    entry(EntryType::Directory, path, 0o755)
}

fn symlink(path: &str, target: &str) -> ListEntry {
    ListEntry {
        target: target.into(),
        ..entry(EntryType::Symlink, path, 0o777)
    }
}

/// Return all listings of a tree, one string for each directory.
fn listings(objects: &Objects, tree: Oid) -> Vec<String> {
    let snapshot = Snapshot {
        reader: objects,
        tree,
    };
    let mut walk = Walk::new(&snapshot, EntryLimit::new(LIMIT));
    let mut all = Vec::new();
    while let Some(listing) = walk.next(&snapshot).unwrap() {
        let path = String::from_utf8_lossy(listing.path.as_bytes()).into_owned();
        let leaves = String::from_utf8_lossy(&listing.leaves).into_owned();
        all.push(format!("/{path}: {leaves}"));
    }
    check_hardlinks(&snapshot, LIMIT).unwrap();
    all
}

/// Write the tree of a list; returns its id.
fn written(objects: &Objects, entries: &[ListEntry]) -> Oid {
    let mut writer = objects;
    list(entries).write_tree(&mut writer).unwrap().tree
}

/// Return the message with which a list is refused, when an entry is added or the tree written.
fn refusal(entries: &[ListEntry]) -> String {
    let mut list = List::new(Cursor::default(), LIMIT);
    let added: Result<()> = entries.iter().try_for_each(|it| list.add(it.clone()));
    let objects = Objects::default();
    let done = added.and_then(|()| list.write_tree(&mut &objects));
    done.map(|tree| tree.tree).unwrap_err().to_string()
}

#[test]
fn the_order_of_a_list_does_not_matter() {
    let entries = [
        directory(""),
        directory("a"),
        file("a/one", 1),
        directory("a/b"),
        file("a/b/two", 2),
        symlink("a/link", "b"),
        directory("c"),
        file("top", 3),
    ];
    let objects = Objects::default();
    let tree = written(&objects, &entries);
    assert_eq!(
        listings(&objects, tree),
        [
            "/: top\t3\t1\n",
            "/a: link\t>b\t1\none\t1\t1\n",
            "/a/b: two\t2\t1\n",
            "/c: "
        ]
    );
    for turn in 1..entries.len() {
        let mut other = entries.to_vec();
        other.rotate_left(turn);
        other.reverse();
        assert_eq!(written(&objects, &other), tree, "{turn}");
    }
    let done = list(&entries).write_tree(&mut &objects).unwrap();
    let totals = done.totals;
    assert_eq!((totals.files, totals.symlinks, totals.bytes), (3, 1, 6));
    assert_eq!(done.directories, 4);
    let summaries = list(&entries).summaries().unwrap();
    assert_eq!(summaries.len(), entries.len() - 1);
    assert!(summaries.contains(&(b"a/b/two".to_vec(), EntryType::File, 2, 1_000_000_000)));
}

#[test]
fn the_leader_of_hardlinks_is_first_in_the_tree_not_in_the_list() {
    let objects = Objects::default();
    let tree = written(
        &objects,
        &[
            link("z", 4),
            directory("b"),
            link("b/x", 4),
            link("b/y", 4),
            directory("a"),
            directory("a/deep"),
            link("a/deep/x", 4),
            link("a/deep/alone", 5),
            directory("."),
        ],
    );
    assert_eq!(
        listings(&objects, tree),
        [
            "/: z\t7\t1\n",
            "/a: ",
            "/a/deep: alone\t7\t1\nx\t7\t1\th../../z\n",
            "/b: x\t7\t1\th../z\ny\t7\t1\th../z\n",
        ]
    );
}

#[test]
fn a_name_of_a_file_that_changed_while_it_was_listed_is_a_file() {
    let objects = Objects::default();
    let changed = ListEntry {
        size: 8,
        ..link("c", 1)
    };
    let entries = [directory(""), link("a", 1), link("b", 1), changed];
    let tree = written(&objects, &entries);
    assert_eq!(
        listings(&objects, tree),
        ["/: a\t7\t1\nb\t7\t1\tha\nc\t8\t1\n"]
    );
}

#[test]
fn a_list_that_is_no_tree_is_refused() {
    let root = directory("");
    for (entries, rule) in [
        (
            vec![root.clone(), file("a", 1), file("a", 1)],
            "listed twice",
        ),
        (
            vec![root.clone(), file("a", 1), symlink("a", "b")],
            "listed twice",
        ),
        (
            vec![root.clone(), directory("a"), file("a", 1)],
            "listed twice",
        ),
        (
            vec![
                root.clone(),
                file("a", 1),
                file("b", 1),
                directory("d"),
                file("d/x", 1),
                file("a", 2),
            ],
            "listed twice",
        ),
        (
            vec![root.clone(), file("d/a", 1)],
            "a directory that is not listed",
        ),
        (vec![file("a", 1)], "a directory that is not listed"),
        (
            vec![root.clone(), file("a", 1), file("a/b", 1)],
            "a directory that is not listed",
        ),
        (vec![file("", 1)], "the root is not a directory"),
        (vec![symlink(".", "a")], "the root is not a directory"),
    ] {
        let message = refusal(&entries);
        assert!(message.contains(rule), "{message}");
    }
    for path in ["../x", "/x", "a//b", "a/../b", "..", "./a", "a/", "a/./b"] {
        let message = refusal(&[root.clone(), file(path, 1)]);
        assert!(message.contains("an unsafe path"), "{path}: {message}");
    }
    let many: Vec<_> = (0..=LIMIT).map(|it| file(&it.to_string(), 1)).collect();
    assert!(refusal(&many).contains("more than 100 entries"));
    assert!(refusal(&[]).contains("root"));
}

#[test]
fn a_directory_may_be_listed_again() {
    let objects = Objects::default();
    let once = [directory(""), directory("a"), file("a/b", 1)];
    let again = [&once[..], &[directory("a"), directory("")]].concat();
    assert_eq!(written(&objects, &again), written(&objects, &once));
}

#[test]
fn what_no_commit_can_hold_is_counted() {
    let long = "n".repeat(256);
    let late = ListEntry {
        mtime: i128::from(i64::MAX) + 1,
        ..file("late", 1)
    };
    let entries = [
        directory(""),
        directory(".~tmp~"),
        file(".~tmp~/x", 1),
        directory("a"),
        directory("a/.~tmp~"),
        file(&long, 1),
        file(&format!("a/{long}"), 1),
        file(&vec!["d"; 3000].join("/"), 1),
        file("large", u64::MAX),
        late,
        symlink("empty", ""),
        symlink("far", &"t".repeat(5000)),
        entry(EntryType::Special, "pipe", 0o644),
        file("kept", 1),
    ];
    let list = list(&entries);
    let objects = Objects::default();
    assert_eq!(list.skipped(), 11);
    let tree = list.write_tree(&mut &objects).unwrap().tree;
    assert_eq!(listings(&objects, tree).join(""), "/: kept\t1\t1\n/a: ");
}

#[test]
fn owners_have_names_where_those_are_known() {
    let mut list = list(&[directory("")]);
    list.name_owner(true, 1, b"one");
    list.name_owner(true, 2, b"");
    list.name_owner(false, 3, b"three");
    list.name_owner(false, 4, b"#4");
    list.name_owner(true, 0, b"toor");
    for (path, owner) in [("a", (1, 3)), ("b", (2, 4)), ("c", (0, 0)), ("d", (3, 1))] {
        let entry = ListEntry {
            owner,
            ..file(path, 1)
        };
        list.add(entry).unwrap();
    }
    let objects = Objects::default();
    let tree = list.write_tree(&mut &objects).unwrap().tree;
    assert_eq!(
        listings(&objects, tree),
        ["/: a\t1\t1\tuone\tgthree\nb\t1\t1\tu#2\tg#4\nc\t1\t1\nd\t1\t1\tu#3\tg#1\n"]
    );
}

fn amended(objects: &Objects, tree: Oid, entries: &[ListEntry], removed: &[&str]) -> Amended {
    let snapshot = Snapshot {
        reader: objects,
        tree,
    };
    let removed: Vec<_> = removed.iter().map(|it| it.as_bytes().to_vec()).collect();
    let mut writer = objects;
    list(entries)
        .amend(&snapshot, LIMIT, &removed, &mut writer)
        .unwrap()
}

#[test]
fn a_part_of_a_list_amends_a_snapshot() {
    let objects = Objects::default();
    let before = [
        directory(""),
        directory("a"),
        file("a/changes", 1),
        file("a/stays", 1),
        file("a/goes", 1),
        directory("becomes"),
        directory("becomes/deep"),
        file("becomes/deep/x", 1),
        directory("goes"),
        file("goes/x", 1),
        file("opens", 1),
    ];
    let listed = [
        directory(""),
        directory("a"),
        file("a/changes", 20),
        directory("new"),
        directory("new/below"),
        file("new/below/x", 3),
        file("becomes", 5),
        directory("opens"),
        symlink("opens/link", "x"),
    ];
    let removed = ["a/goes", "goes", "goes/x", "never/there"];
    let after = [
        directory(""),
        directory("a"),
        file("a/changes", 20),
        file("a/stays", 1),
        file("becomes", 5),
        directory("new"),
        directory("new/below"),
        file("new/below/x", 3),
        directory("opens"),
        symlink("opens/link", "x"),
    ];
    let tree = written(&objects, &before);
    let done = amended(&objects, tree, &listed, &removed);
    assert_eq!(
        listings(&objects, done.tree),
        listings(&objects, written(&objects, &after))
    );
    assert_eq!(done.tree, written(&objects, &after));
    let (old, new) = (
        list(&before).write_tree(&mut &objects).unwrap(),
        list(&after).write_tree(&mut &objects).unwrap(),
    );
    let bytes = old.totals.bytes + done.added.bytes - done.removed.bytes;
    assert_eq!(bytes, new.totals.bytes);
    let directories = old.directories + done.added_directories - done.removed_directories;
    assert_eq!(directories, new.directories);
    // A list of nothing but the top changes nothing.
    let same = amended(&objects, tree, &[directory("")], &[]);
    assert_eq!(same.tree, tree);
    assert_eq!(amended(&objects, tree, &[], &["a"]).tree, tree);
}
