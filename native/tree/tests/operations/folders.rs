//! Checks directories that are opened, made writable, and restored.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests make what the crate works on"
)]

use huai_sys::error::Errno;
use huai_sys::stop::Stop;
use huai_tree::publish::{
    Attributes, DirectoryMove, Mode, Remove, Tree, TreeOptions, WantedDirectory,
};

use crate::world::{User, World, users};

const CLOSED: [&str; 5] = [
    "d 555 tree/a",
    "d 555 tree/a/b",
    "d 555 tree/a/b/c",
    "d 755 tree/a-b",
    "d 555 tree/other",
];

fn options(loosens: Option<u32>) -> TreeOptions {
    TreeOptions {
        loosens,
        umask: 0o022,
        owners: false,
    }
}

fn tree_of(world: &World, loosens: Option<u32>) -> Tree {
    let (_top, number) = world.open("tree");
    Tree::new(number, options(loosens)).unwrap()
}

#[test]
fn only_directories_below_the_root_are_opened() {
    let entries = [
        "d 755 tree/above",
        "d 755 tree/above/below",
        "d 000 tree/shut",
        "d 755 tree/shut/below",
        "f 644 tree/file old",
        "l tree/link above",
        "l tree/out ../outside",
        "p tree/fifo",
    ];
    for user in users() {
        for (path, expected) in [
            ("", None),
            ("above", None),
            ("above/below", None),
            ("shut/below", None),
            ("missing", Some(Errno::NOENT)),
            ("missing/below", Some(Errno::NOENT)),
            ("file", Some(Errno::NOTDIR)),
            ("file/below", Some(Errno::NOTDIR)),
            ("fifo", Some(Errno::NOTDIR)),
            ("link", Some(Errno::NOTDIR)),
            ("link/below", Some(Errno::NOTDIR)),
            ("out", Some(Errno::NOTDIR)),
            ("above/../above", Some(Errno::XDEV)),
            ("..", Some(Errno::XDEV)),
            ("above/", Some(Errno::XDEV)),
            ("/above", Some(Errno::XDEV)),
        ] {
            let world = World::new(*user, entries);
            let before = world.entries();
            let mut tree = tree_of(&world, Some(user.number()));
            let opened = world.run(|| {
                let opened = tree.open(path.as_bytes());
                assert!(tree.restore_modes(&Stop::default()).is_empty());
                opened
            });
            assert_eq!(
                opened.err().map(|error| error.errno),
                expected,
                "{user:?} {path}"
            );
            assert_eq!(world.entries(), before, "{user:?} {path}");
        }
    }
}

#[test]
fn no_mount_is_entered() {
    let top = std::fs::File::open("/").unwrap();
    let number = u32::try_from(std::os::fd::AsRawFd::as_raw_fd(&top)).unwrap();
    let mut tree = Tree::new(number, options(None)).unwrap();
    for path in ["proc", "proc/self"] {
        assert_eq!(tree.open(path.as_bytes()).unwrap_err().errno, Errno::XDEV);
    }
}

#[test]
fn a_path_may_be_longer_than_the_kernel_takes_at_once() {
    let world = World::new(User::Ordinary, []);
    let mut tree = tree_of(&world, None);
    let name = "n".repeat(200);
    let paths: Vec<_> = (1..=25)
        .map(|depth| vec![&*name; depth].join("/"))
        .collect();
    let item = |path: &String| WantedDirectory {
        path: path.clone().into_bytes(),
        attributes: None,
    };
    let items: Vec<_> = paths.iter().map(item).collect();
    world.run(|| {
        assert_eq!(
            tree.make_directories(&items, &Stop::default()).done,
            items.len()
        );
        tree.refresh();
        tree.open(paths.last().unwrap().as_bytes()).unwrap();
        // `std::fs` can remove it afterwards.
        let removal = |path: &String| Remove {
            path: path.clone().into_bytes(),
            directory: true,
        };
        let items: Vec<_> = paths.iter().rev().map(removal).collect();
        assert_eq!(
            tree.remove_entries(&items, &Stop::default()).done,
            items.len()
        );
    });
}

/// An operation on a tree whose directories `a`, `a/b`, `a/b/c` and `other` were made writable.
type Happens = fn(&mut Tree, &World);

fn settle(tree: &mut Tree, _: &World) {
    let attributes = Some(Attributes {
        user: None,
        group: None,
        mode: Mode::Exact(0o711),
        mtime: 0,
    });
    let path = b"a/b".to_vec();
    let row = tree.settle_directories(&[WantedDirectory { path, attributes }], &Stop::default());
    assert_eq!(row.done, 1);
}

fn move_away(tree: &mut Tree, _: &World) {
    let item = DirectoryMove {
        old: b"a".into(),
        new: b"a-b/new".into(),
        forward: None,
    };
    assert_eq!(tree.move_directories(&[item], &Stop::default()).done, 1);
}

fn remove(tree: &mut Tree, _: &World) {
    let removal = |path: &[u8]| Remove {
        path: path.into(),
        directory: true,
    };
    let items = [&b"a/b/c"[..], b"a/b"].map(removal);
    assert_eq!(tree.remove_entries(&items, &Stop::default()).done, 2);
}

fn lose(_: &mut Tree, world: &World) {
    std::fs::remove_dir(world.at("tree/a/b/c")).unwrap();
}

#[test]
fn modes_are_restored_unless_they_are_final() {
    let cases: [(&str, Happens, &[&str], &[&str]); 5] = [
        (
            "nothing",
            |_, _| {},
            &[],
            &["555 a", "555 a/b", "555 a/b/c"],
        ),
        ("settled", settle, &[], &["555 a", "711 a/b", "555 a/b/c"]),
        (
            "moved",
            move_away,
            &[],
            &["555 a-b/new", "555 a-b/new/b", "555 a-b/new/b/c"],
        ),
        ("removed", remove, &[], &["555 a"]),
        ("lost", lose, &["a/b/c"], &["555 a", "555 a/b"]),
    ];
    for user in users() {
        for (name, happens, failed, modes) in cases {
            let world = World::new(*user, CLOSED);
            let mut tree = tree_of(&world, Some(user.number()));
            world.run(|| {
                for path in ["a", "a/b", "a/b/c", "other"] {
                    assert!(tree.make_writable(path.as_bytes()).unwrap(), "{path}");
                    assert!(!tree.make_writable(path.as_bytes()).unwrap(), "{path}");
                }
                assert!(!tree.make_writable(b"a-b").unwrap());
                happens(&mut tree, &world);
                tree.refresh();
                let failures = tree.restore_modes(&Stop::default());
                assert_eq!(
                    failures,
                    failed
                        .iter()
                        .map(|path| path.as_bytes())
                        .collect::<Vec<_>>()
                );
                assert!(tree.restore_modes(&Stop::default()).is_empty());
            });
            let modes = modes.iter().chain(&["755 a-b", "555 other"]);
            let line = |mode: &&str| format!("d {}", mode.replacen(' ', " tree/", 1));
            let mut expected: Vec<_> = modes.map(line).collect();
            expected.sort_by(|one, other| one[6..].cmp(&other[6..]));
            let mut entries = world.entries();
            entries.retain(|line| line.contains(" tree/"));
            entries.sort_by(|one, other| one[6..].cmp(&other[6..]));
            assert_eq!(entries, expected, "{user:?} {name}");
        }
    }
}

#[test]
fn a_directory_of_another_user_is_not_opened_up() {
    let world = World::new(User::Ordinary, CLOSED);
    for loosens in [None, Some(User::Ordinary.number() + 1)] {
        let mut tree = tree_of(&world, loosens);
        assert!(!world.run(|| tree.make_writable(b"a").unwrap()));
    }
}

#[test]
fn a_rename_by_another_process_is_seen_after_a_refresh() {
    let world = World::new(User::Ordinary, ["d 755 tree/old", "d 755 tree/old/below"]);
    let mut tree = tree_of(&world, None);
    tree.open(b"old/below").unwrap();
    std::fs::rename(world.at("tree/old"), world.at("tree/new")).unwrap();
    tree.refresh();
    assert_eq!(tree.open(b"old/below").unwrap_err().errno, Errno::NOENT);
    tree.open(b"new/below").unwrap();
}
