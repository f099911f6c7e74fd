//! Checks each operation at a path in each situation: the result, or the reason of a failure.

#![allow(
    clippy::disallowed_methods,
    reason = "tests make what the crate works on"
)]
#![allow(
    clippy::disallowed_types,
    reason = "tests make what the crate works on"
)]

use std::os::unix::fs::PermissionsExt;

use huai_sys::error::Errno;
use huai_sys::stop::Stop;
use huai_tree::publish::{
    Attributes, DirectoryMove, FailureReason, Leaf, Link, Mode, PublishedFile, Remove, RowResult,
    Staged, StagedDirectory, Symlink, Tree, TreeOptions, WantedDirectory, WholeDirectory,
};

use crate::world::{User, World, users};

/// The seconds since the epoch that everything gets.
const TIME: i64 = 7;

/// The path of the operation in all situations except the last.
const PATH: &str = "above/name";
const RESERVED: &str = ".~tmp~/name";

/// The other entries.
const ALWAYS: [&str; 8] = [
    "f 644 outside/kept kept",
    "d 755 outside/name",
    "f 644 tree/leader linked",
    "d 755 tree/source",
    "f 644 tree/source/file moved",
    "f 640 area/staged new",
    "d 755 area/whole",
    "f 600 area/whole/file whole",
];

/// The entries at the path, or above it.
const SITUATIONS: [(&str, &[&str]); 12] = [
    ("nothing", &["d 755 tree/above"]),
    ("a file", &["d 755 tree/above", "f 644 tree/above/name old"]),
    (
        "a symlink",
        &["d 755 tree/above", "l tree/above/name ../../outside"],
    ),
    ("a fifo", &["d 755 tree/above", "p tree/above/name"]),
    (
        "an empty directory",
        &["d 755 tree/above", "d 755 tree/above/name"],
    ),
    (
        "a full directory",
        &[
            "d 755 tree/above",
            "d 755 tree/above/name",
            "f 644 tree/above/name/in old",
        ],
    ),
    ("no directory above", &[]),
    ("a file above", &["f 644 tree/above old"]),
    ("a symlink above", &["l tree/above ../outside"]),
    ("nothing, in a closed directory", &["d 555 tree/above"]),
    (
        "a file, in a closed directory",
        &["d 555 tree/above", "f 644 tree/above/name old"],
    ),
    ("a reserved path", &["d 755 tree/.~tmp~"]),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    MakeDirectory,
    SettleDirectory,
    RemoveDirectory,
    RemoveLeaf,
    MakeSymlink,
    MakeLink,
    SettleFile,
    SettleSymlink,
    PublishFile,
    PublishWhole,
    MoveHere,
    MoveAway,
    MoveAndForward,
}

use Operation::{
    MakeDirectory, MakeLink, MakeSymlink, MoveAndForward, MoveAway, MoveHere, PublishFile,
    PublishWhole, RemoveDirectory, RemoveLeaf, SettleDirectory, SettleFile, SettleSymlink,
};

const OPERATIONS: [Operation; 13] = [
    MakeDirectory,
    SettleDirectory,
    RemoveDirectory,
    RemoveLeaf,
    MakeSymlink,
    MakeLink,
    SettleFile,
    SettleSymlink,
    PublishFile,
    PublishWhole,
    MoveHere,
    MoveAway,
    MoveAndForward,
];

/// The result of each in the first nine situations.  A closed directory is like an open one for its
/// owner, and a reserved path is refused by all.
const TABLE: &str = "
MakeDirectory   | d 750 | exists | exists | exists | d 750 | d 750, f 644 /in old | missing | no directory | no directory
SettleDirectory | missing | no directory | no directory | no directory | d 510 | d 510, f 644 /in old | missing | no directory | no directory
RemoveDirectory | nothing | no directory | no directory | no directory | nothing | NotEmpty | nothing | nothing | nothing
RemoveLeaf      | nothing | nothing | nothing | nothing | is a directory | is a directory | nothing | nothing | nothing
MakeSymlink     | l there | l there | l there | l there | is a directory | is a directory | missing | no directory | no directory
MakeLink        | f 644 linked x2 | f 644 linked x2 | f 644 linked x2 | f 644 linked x2 | is a directory | is a directory | missing | no directory | no directory
SettleFile      | missing | f 640 old | NotRegular | NotRegular | NotRegular | NotRegular | missing | no directory | no directory
SettleSymlink   | missing | NotSymlink | l ../../outside | NotSymlink | NotSymlink | NotSymlink | missing | no directory | no directory
PublishFile     | f 640 new | f 640 new | f 640 new | f 640 new | is a directory | is a directory | missing | no directory | no directory
PublishWhole    | d 755, f 600 /file whole, l /link there | exists | exists | exists | exists | exists | missing | no directory | no directory
MoveHere        | d 755, f 644 /file moved | exists | exists | exists | exists | exists | missing | no directory | no directory
MoveAway        | NoDirectory | NoDirectory | NoDirectory | NoDirectory | nothing | nothing | NoDirectory | NoDirectory | NoDirectory
MoveAndForward  | d 755, f 644 /file moved | Occupied | Occupied | Occupied | Occupied | Occupied | missing | no directory | no directory
";

fn attributes(mode: u32) -> Attributes {
    Attributes {
        user: None,
        group: None,
        mode: Mode::Exact(mode),
        mtime: TIME * 1_000_000_000,
    }
}

fn file(path: &str, mode: u32) -> PublishedFile {
    PublishedFile {
        path: path.into(),
        attributes: attributes(mode),
    }
}

fn symlink(path: &str) -> Symlink {
    Symlink {
        path: path.into(),
        target: b"there".into(),
        attributes: attributes(0o777),
    }
}

fn directory(path: &str, mode: u32) -> WantedDirectory {
    WantedDirectory {
        path: path.into(),
        attributes: Some(attributes(mode)),
    }
}

fn staged(folder: u32, name: &str) -> Staged {
    Staged {
        folder,
        name: name.into(),
    }
}

fn whole_directory(folder: u32, path: &str, names: usize) -> WholeDirectory {
    WholeDirectory {
        staged: staged(folder, "whole"),
        path: path.into(),
        directories: vec![StagedDirectory {
            directory: directory(path, 0o755),
            names,
            settled: true,
        }],
        others: vec![],
        links: vec![],
        symlinks: vec![symlink(&format!("{path}/link"))],
    }
}

impl Operation {
    /// Do it at `path`.
    fn run(self, tree: &mut Tree, area: u32, path: &str, stop: &Stop) -> RowResult {
        let remove = |directory| Remove {
            path: path.into(),
            directory,
        };
        let moved = |old: &str, new: &str, forward| DirectoryMove {
            old: old.into(),
            new: new.into(),
            forward,
        };
        match self {
            MakeDirectory => tree.make_directories(&[directory(path, 0o750)], stop),
            SettleDirectory => tree.settle_directories(&[directory(path, 0o510)], stop),
            RemoveDirectory => tree.remove_entries(&[remove(true)], stop),
            RemoveLeaf => tree.remove_entries(&[remove(false)], stop),
            MakeSymlink => tree.make_symlinks(&[symlink(path)], stop),
            MakeLink => {
                let mut file = file(path, 0o644);
                file.attributes.mtime = 0;
                let leader = Some(b"leader".into());
                tree.make_links(
                    &[Link {
                        file,
                        size: 6,
                        leader,
                    }],
                    stop,
                )
            }
            SettleFile => tree.settle_leaves(&[Leaf::File(file(path, 0o640))], stop),
            SettleSymlink => tree.settle_leaves(&[Leaf::Symlink(file(path, 0o777))], stop),
            PublishFile => {
                let item = (staged(area, "staged"), file(path, 0o640));
                let row = tree.prepare_files(&[item], stop);
                if row.done == 0 {
                    return row;
                }
                tree.publish_files(&[(staged(area, "staged"), path.into())], stop)
            }
            PublishWhole => tree.publish_directories(&[whole_directory(area, path, 1)], stop),
            MoveHere => tree.move_directories(&[moved("source", path, None)], stop),
            MoveAway => tree.move_directories(&[moved(path, "moved", None)], stop),
            MoveAndForward => {
                let forward = Some(symlink("source"));
                tree.move_directories(&[moved("source", path, forward)], stop)
            }
        }
    }
}

/// Open the tree of a world and its staging area, for a user who may make directories writable, or
/// not.
fn tree_of(world: &World, loosens: Option<u32>) -> (Tree, (std::fs::File, u32)) {
    let (top, area) = (world.open("tree"), world.open("area"));
    let options = TreeOptions {
        loosens,
        umask: 0o022,
        owners: false,
    };
    let mut tree = Tree::new(top.1, options).unwrap();
    tree.stage_in(area.1).unwrap();
    (tree, area)
}

/// Return the reason of a failure in words of `TABLE`; `None` without one.
fn reason(row: RowResult) -> Option<String> {
    let failure = row.failure?;
    Some(match failure.reason {
        FailureReason::Errno(Errno::NOENT) => "missing".into(),
        FailureReason::Errno(Errno::NOTDIR) => "no directory".into(),
        FailureReason::Errno(Errno::EXIST) => "exists".into(),
        FailureReason::Errno(Errno::ISDIR) => "is a directory".into(),
        FailureReason::Errno(Errno::ACCESS) => "denied".into(),
        reason => format!("{reason:?}"),
    })
}

/// Make the world of a situation; returns the path in it.
fn situation(user: User, number: usize) -> (World, &'static str) {
    let (name, entries) = SITUATIONS[number];
    let path = if name == "a reserved path" {
        RESERVED
    } else {
        PATH
    };
    (
        World::new(user, ALWAYS.iter().chain(entries).copied()),
        path,
    )
}

/// Return the result of an operation in a situation, as `TABLE` has it.
fn expected_outcome(operation: Operation, number: usize) -> &'static str {
    let number = match SITUATIONS[number].0 {
        "a reserved path" => return "Reserved",
        "nothing, in a closed directory" => 0,
        "a file, in a closed directory" => 1,
        _ => number,
    };
    let rows = TABLE.lines().map(|row| row.split('|').map(str::trim));
    let name = format!("{operation:?}");
    let mut row = rows
        .into_iter()
        .find(|row| row.clone().next() == Some(&name))
        .unwrap();
    row.nth(number + 1).unwrap()
}

#[test]
fn each_operation_in_each_situation() {
    let mut table_rows = vec![];
    let mut expected = vec![];
    for user in users() {
        for operation in OPERATIONS {
            for (number, (name, _)) in SITUATIONS.iter().enumerate() {
                let (world, path) = situation(*user, number);
                let before = world.entries();
                let (mut tree, area) = tree_of(&world, Some(user.number()));
                let row = world.run(|| {
                    let row = operation.run(&mut tree, area.1, path, &Stop::default());
                    assert_eq!(tree.restore_modes(&Stop::default()), Vec::<Vec<u8>>::new());
                    row
                });
                let case = format!("{user:?} {operation:?} {name}");
                let outcome = expected_outcome(operation, number);
                let is_done = row.done == 1;
                let verdict = match reason(row) {
                    None if is_done => world.shown_at(&format!("tree/{path}")),
                    reason => {
                        assert_eq!(world.entries(), before, "{case}");
                        reason.unwrap()
                    }
                };
                let source = match operation {
                    MoveHere if is_done => "nothing",
                    MoveAndForward if is_done => "l there",
                    _ => "d 755, f 644 /file moved",
                };
                assert_eq!(world.shown_at("tree/source"), source, "{case}");
                let outside = world.shown_at("outside/kept");
                assert_eq!(outside, "f 644 kept", "{case}");
                assert_eq!(world.shown_at("area/making"), "nothing", "{case}");
                table_rows.push(format!("{case}: {verdict}"));
                expected.push(format!("{case}: {outcome}"));
            }
        }
    }
    assert_eq!(table_rows, expected);
}

/// The situations in which each operation succeeds.
const DONE: [(Operation, usize); 13] = [
    (MakeDirectory, 0),
    (SettleDirectory, 4),
    (RemoveDirectory, 4),
    (RemoveLeaf, 1),
    (MakeSymlink, 1),
    (MakeLink, 1),
    (SettleFile, 1),
    (SettleSymlink, 2),
    (PublishFile, 1),
    (PublishWhole, 0),
    (MoveHere, 0),
    (MoveAway, 5),
    (MoveAndForward, 0),
];

#[test]
fn a_stop_comes_before_each_operation() {
    for (operation, number) in DONE {
        let (world, path) = situation(User::Ordinary, number);
        let before = world.entries();
        let (mut tree, area) = tree_of(&world, None);
        let stop = Stop::default();
        stop.set();
        let row = world.run(|| operation.run(&mut tree, area.1, path, &stop));
        assert_eq!(
            (row.done, row.failure.is_none()),
            (0, true),
            "{operation:?}"
        );
        assert_eq!(world.entries(), before, "{operation:?}");
    }
}

#[test]
fn repeating_an_operation_does_no_harm() {
    for (operation, number) in DONE {
        let (world, path) = situation(User::Ordinary, number);
        let (mut tree, area) = tree_of(&world, None);
        let stop = Stop::default();
        let mut run = || world.run(|| operation.run(&mut tree, area.1, path, &stop).done);
        assert_eq!(run(), 1, "{operation:?}");
        let after = world.entries();
        run();
        assert_eq!(world.entries(), after, "{operation:?}");
    }
}

#[test]
fn one_who_must_not_open_a_directory_up_changes_nothing_in_it() {
    for (operation, number) in DONE {
        let (world, path) = situation(User::Ordinary, number);
        let closed = world.at("tree/above");
        std::fs::set_permissions(closed, PermissionsExt::from_mode(0o555)).unwrap();
        let before = world.entries();
        let (mut tree, area) = tree_of(&world, None);
        let row = world.run(|| operation.run(&mut tree, area.1, path, &Stop::default()));
        // Setting attributes of an existing entry needs no write permission in its directory.
        let is_settled = matches!(operation, SettleDirectory | SettleFile | SettleSymlink);
        if is_settled {
            assert_eq!(row.done, 1, "{operation:?}");
        } else {
            assert_eq!(reason(row).as_deref(), Some("denied"), "{operation:?}");
            assert_eq!(world.entries(), before, "{operation:?}");
        }
    }
}

#[test]
fn the_first_failure_ends_a_row() {
    let world = World::new(User::Ordinary, ["f 644 tree/file old"]);
    let (mut tree, _area) = tree_of(&world, None);
    let items = ["one", "file", "three"].map(|path| directory(path, 0o755));
    let row = world.run(|| tree.make_directories(&items, &Stop::default()));
    assert_eq!(row.done, 1);
    assert_eq!(row.failure.unwrap().path, b"file");
    assert_eq!(world.shown_at("tree/one"), "d 755");
    assert_eq!(world.shown_at("tree/three"), "nothing");
}

#[test]
fn times_are_those_that_are_stated() {
    for (operation, number) in DONE {
        let (world, path) = situation(User::Ordinary, number);
        let (mut tree, area) = tree_of(&world, None);
        world.run(|| operation.run(&mut tree, area.1, path, &Stop::default()));
        let is_stated = matches!(
            operation,
            SettleDirectory | MakeSymlink | SettleFile | SettleSymlink | PublishFile | PublishWhole
        );
        if is_stated {
            assert_eq!(world.mtime(&format!("tree/{path}")), TIME, "{operation:?}");
        }
    }
}

#[test]
fn a_mode_that_is_kept_is_that_of_what_is_there_or_less_the_umask() {
    for (there, published, made) in [
        (&[][..], "f 755 new", "d 755"),
        (&["f 600 tree/name old"], "f 600 new", "exists"),
        (&["l tree/name there"], "f 755 new", "exists"),
        (&["d 700 tree/name"], "is a directory", "d 700"),
    ] {
        let mut stated = attributes(0);
        stated.mode = Mode::Kept(0o777);
        let stop = Stop::default();
        let world = || World::new(User::Ordinary, ALWAYS.iter().chain(there).copied());
        let as_words = |world: &World, row: RowResult| {
            reason(row).unwrap_or_else(|| world.shown_at("tree/name"))
        };

        let files = world();
        let (mut tree, area) = tree_of(&files, None);
        let (from, path) = (|| staged(area.1, "staged"), b"name".to_vec());
        let file = PublishedFile {
            path: path.clone(),
            attributes: stated,
        };
        let row = files.run(|| {
            assert_eq!(tree.prepare_files(&[(from(), file)], &stop).done, 1);
            tree.publish_files(&[(from(), path.clone())], &stop)
        });
        assert_eq!(as_words(&files, row), published, "{there:?}");

        let directories = world();
        let (mut tree, _area) = tree_of(&directories, None);
        let items = [WantedDirectory {
            path,
            attributes: Some(stated),
        }];
        let row = directories.run(|| {
            let row = tree.make_directories(&items, &stop);
            if row.done == 1 {
                tree.settle_directories(&items, &stop)
            } else {
                row
            }
        });
        assert_eq!(as_words(&directories, row), made, "{there:?}");
    }
}

#[test]
fn what_is_replaced_or_removed_is_kept_where_that_is_asked_for() {
    let former_path = ".~tmp~/former/above/name";
    for (operation, number, former) in [
        (PublishFile, 0, "nothing"),
        (PublishFile, 1, "f 644 old"),
        (PublishFile, 2, "l ../../outside"),
        (PublishFile, 4, "nothing"),
        (PublishFile, 10, "f 644 old"),
        (MakeSymlink, 1, "f 644 old"),
        (MakeLink, 1, "f 644 old"),
        (RemoveLeaf, 0, "nothing"),
        (RemoveLeaf, 1, "f 644 old"),
        (RemoveLeaf, 2, "l ../../outside"),
        (RemoveLeaf, 4, "nothing"),
        (RemoveLeaf, 10, "f 644 old"),
        (RemoveDirectory, 4, "nothing"),
    ] {
        let (world, path) = situation(User::Ordinary, number);
        let (mut tree, area) = tree_of(&world, Some(User::Ordinary.number()));
        tree.keep_below(b".~tmp~/former".into());
        world.run(|| operation.run(&mut tree, area.1, path, &Stop::default()));
        let former_now = world.shown_at(&format!("tree/{former_path}"));
        assert_eq!(former_now, former, "{operation:?} {}", SITUATIONS[number].0);
    }
}

#[test]
fn a_whole_directory_joins_only_what_hands_nothing_down_and_holds_what_is_wanted() {
    for (mode, names, expected) in [
        ("755", 1, "d 755, f 600 /file whole, l /link there"),
        ("755", 0, "NotWhole"),
        ("755", 2, "NotWhole"),
        ("2755", 1, "NotWhole"),
    ] {
        let above = format!("d {mode} tree/above");
        let world = World::new(User::Ordinary, ALWAYS.into_iter().chain([&*above]));
        let (mut tree, area) = tree_of(&world, None);
        let items = [whole_directory(area.1, PATH, names)];
        let row = world.run(|| tree.publish_directories(&items, &Stop::default()));
        let outcome = reason(row).unwrap_or_else(|| world.shown_at("tree/above/name"));
        assert_eq!(outcome, expected, "{mode} {names}");
    }
}
