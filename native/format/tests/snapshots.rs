//! Checks small snapshots: moves, limits, and errors of the reader.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::cell::RefCell;
use std::collections::HashMap;

use huai_format::diff::{Comparison, Sink};
use huai_format::entries::Entry;
use huai_format::path::RelPath;
use huai_format::snapshots::{EntryLimit, Lookup, ObjectReader, Snapshot, Walk, piece_key};
use huai_format::walks::{SubtreeTotals, check_hardlinks, check_hardlinks_at};
use huai_format::write::Totals;
use huai_git::error::{Error, Result};
use huai_git::object::Kind;
use huai_git::oid::Oid;

/// Objects in memory, with a count of reads.
#[derive(Default)]
struct Objects {
    held: RefCell<HashMap<Oid, (Kind, Vec<u8>)>>,
    read: RefCell<usize>,
}

impl ObjectReader for &Objects {
    fn read(&self, oid: &Oid, kind: Kind) -> Result<Vec<u8>> {
        *self.read.borrow_mut() += 1;
        match self.held.borrow().get(oid) {
            Some((found, data)) if *found == kind => Ok(data.clone()),
            _ => Err(Error::Lent("not here".into())),
        }
    }
}

impl Objects {
    fn add(&self, kind: Kind, data: &[u8]) -> Oid {
        let oid = Oid::of(kind, data).unwrap();
        self.held.borrow_mut().insert(oid, (kind, data.to_vec()));
        oid
    }

    fn tree(&self, items: &[(&[u8], Oid, bool)]) -> Oid {
        let mut sorted = items.to_vec();
        sorted
            .sort_by_key(|(name, _, is_tree)| [*name, if *is_tree { b"/" } else { b"" }].concat());
        let lines = sorted.iter().map(|(name, oid, is_tree)| {
            let mode: &[u8] = if *is_tree { b"40000 " } else { b"100644 " };
            [mode, name, b"\0", oid.as_bytes()].concat()
        });
        self.add(Kind::Tree, &lines.collect::<Vec<_>>().concat())
    }

    /// Make an own directory with one manifest and these subdirectories.
    fn own(&self, text: &str, children: &[(&str, Oid)]) -> Oid {
        let names: Vec<Vec<u8>> = children
            .iter()
            .map(|(name, _)| format!("={name}").into_bytes())
            .collect();
        let blob = self.add(Kind::Blob, format!("./\t0\n{text}").as_bytes());
        let mut items: Vec<(&[u8], Oid, bool)> = vec![(b"m", blob, false)];
        items.extend(
            names
                .iter()
                .zip(children)
                .map(|(name, (_, oid))| (&name[..], *oid, true)),
        );
        self.tree(&items)
    }

    fn at(&self, tree: Oid) -> Snapshot<&Self> {
        Snapshot { reader: self, tree }
    }
}

/// The differences, each as a word.
#[derive(Default)]
struct DiffWords {
    words: Vec<String>,
    most: usize,
}

impl Sink for DiffWords {
    fn is_full(&self) -> bool {
        self.words.len() >= self.most
    }

    fn change(&mut self, directory: &RelPath, old: Option<&Entry<'_>>, new: Option<&Entry<'_>>) {
        let sign = match (old, new) {
            (Some(_), Some(_)) => '~',
            (Some(_), None) => '-',
            _ => '+',
        };
        let name = &old.or(new).unwrap().name;
        let path = if name.is_empty() {
            directory.clone()
        } else {
            directory.join(name)
        };
        self.words
            .push(format!("{sign}{}", path.as_bytes().escape_ascii()));
    }

    fn moved(&mut self, old: &RelPath, new: &RelPath) {
        let (old, new) = (old.as_bytes().escape_ascii(), new.as_bytes().escape_ascii());
        self.words.push(format!("{old} to {new}"));
    }
}

/// Compare two trees, each given with its limit, in batches of about `most` differences; returns
/// all of them.
fn compare_limited(
    objects: &Objects,
    old: (Oid, u64),
    new: (Oid, u64),
    most: usize,
) -> Result<Vec<String>> {
    let sides = ((objects.at(old.0), old.1), (objects.at(new.0), new.1));
    let mut comparison = Comparison::new(sides.0, sides.1);
    let mut words = Vec::new();
    loop {
        let mut collected = DiffWords {
            words: vec![],
            most,
        };
        let done = comparison.advance(&mut collected)?;
        words.extend(collected.words);
        if done {
            return Ok(words);
        }
    }
}

/// Return the differences of two trees, which are the same in one batch and in batches of one.
fn compare(objects: &Objects, old: Oid, new: Oid) -> Vec<String> {
    let all_at_once = compare_limited(objects, (old, 1000), (new, 1000), usize::MAX).unwrap();
    let singly = compare_limited(objects, (old, 1000), (new, 1000), 1).unwrap();
    assert_eq!(all_at_once, singly);
    all_at_once
}

#[test]
fn what_differs_is_found_whatever_the_batch() {
    let objects = Objects::default();
    let old = objects.own("a\t1\t0\nb\t1\t0\nd/\t0\nx\t1\t0\ny\t1\t0\n", &[]);
    let new = objects.own("a\t2\t0\nc\t1\t0\nd/\t1\nx\t>t\t0\nz\t1\t0\ne/\t0\n", &[]);
    assert_eq!(
        compare(&objects, old, new),
        ["~a", "-b", "+c", "~d", "~d/x", "-d/y", "+d/z", "+e"]
    );
    assert!(compare(&objects, new, new).is_empty());
}

#[test]
fn an_own_directory_that_is_inlined_is_compared_by_path() {
    let objects = Objects::default();
    let inner = objects.own("x\t1\t0\n", &[]);
    let own = objects.own("", &[("d", objects.own("a\t1\t0\n", &[("e", inner)]))]);
    let inlined = objects.own("d/\t0\na\t1\t0\nb\t1\t0\nd/e/\t0\nx\t1\t0\n", &[]);
    assert_eq!(compare(&objects, own, inlined), ["+d/b"]);
    assert_eq!(compare(&objects, inlined, own), ["-d/b"]);
}

#[test]
fn a_directory_that_came_back_elsewhere_is_moved() {
    let objects = Objects::default();
    let inner = objects.own("x\t1\t0\n", &[]);
    let old = objects.own("", &[("a", inner), ("b", inner)]);
    let new = objects.own(
        "",
        &[("c", objects.own("y\t1\t0\nz\t1\t0\n", &[("i", inner)]))],
    );
    assert_eq!(
        compare(&objects, old, new),
        ["+c", "+c/y", "+c/z", "a to c/i", "-b", "-b/x"]
    );
}

/// Make `count` lines with names that begin with `letter`.
fn lines(letter: char, count: usize) -> String {
    let line = |number| format!("{letter}{number:04}\t{number}\t0\n");
    (0..count).map(line).collect::<Vec<_>>().concat()
}

#[test]
fn a_directory_that_changed_on_the_way_is_compared_where_it_is_now() {
    let objects = Objects::default();
    let text = lines('f', 200);
    let changed = text
        .replace("f0003\t3", "f0003\t4")
        .replace("f0005\t5\t0\n", "");
    let inner = objects.own(&lines('i', 130), &[]);
    let other = objects.own(&lines('o', 130), &[]);
    let old = objects.own(
        "",
        &[("a", objects.own(&text, &[("i", inner), ("o", other)]))],
    );
    let moved = objects.own(&changed, &[("i", inner), ("p", other)]);
    let new = objects.own("", &[("z", objects.own("", &[("b", moved)]))]);
    let mut words = compare(&objects, old, new);
    assert_eq!(words[..4], ["+z", "a to z/b", "~z/b/f0003", "-z/b/f0005"]);
    words.drain(..4);
    words.sort();
    let (gone, come) = (["-z/b/o", "-z/b/o/o0000"], ["+z/b/p", "+z/b/p/o0000"]);
    assert_eq!(words.len(), 2 * 131);
    for each in gone.iter().chain(&come) {
        assert!(words.contains(&(*each).to_string()), "{words:?}");
    }
}

#[test]
fn what_could_not_be_named_at_the_new_path_keeps_a_directory_from_moving() {
    let objects = Objects::default();
    let deep = |text: &str, names: usize| {
        let inner = objects.own(text, &[]);
        let name = "d".repeat(250);
        (0..names).fold(inner, |below, _| objects.own("", &[(&name, below)]))
    };
    let long = "x".repeat(250);
    let text = lines('f', 20);
    // The sum is 4,095 bytes: 15 times 251, and 326.
    let old = deep(&format!("{text}{long}\t1\t0\n"), 15);
    let old = objects.own("", &[("a", old)]);
    let new = |name: &str| objects.own("", &[(name, deep(&text, 15))]);
    let same = compare(&objects, old, new("b"));
    assert_eq!(same[0], "a to b");
    assert!(same[1].ends_with(&long), "{same:?}");
    let longer = compare(&objects, old, new(&"b".repeat(100)));
    assert_eq!(longer[0], format!("+{}", "b".repeat(100)));
    assert_eq!(longer.len(), 16 + 20 + 16 + 21);
}

#[test]
fn half_of_a_directory_has_to_be_there_for_a_move() {
    let objects = Objects::default();
    let old = objects.own("", &[("a", objects.own(&lines('f', 10), &[]))]);
    let with = |kept: usize, more: usize| {
        let text = lines('f', kept) + &lines('g', more);
        objects.own("", &[("b", objects.own(&text, &[]))])
    };
    // The directory's own line counts as well.
    assert_eq!(compare(&objects, old, with(5, 5))[0], "a to b");
    assert_eq!(compare(&objects, old, with(4, 6))[0], "+b");
    assert_eq!(compare(&objects, old, with(10, 11))[0], "a to b");
    assert_eq!(compare(&objects, old, with(10, 12))[0], "+b");
}

#[test]
fn what_is_most_alike_moves() {
    let objects = Objects::default();
    let own = |text: &str| objects.own(text, &[]);
    let old = objects.own(
        "",
        &[("a", own(&lines('f', 20))), ("b", own(&lines('f', 18)))],
    );
    let new = objects.own("", &[("c", own(&lines('f', 19)))]);
    let words = compare(&objects, old, new);
    assert_eq!(words[..2], ["a to c", "-c/f0019"]);
    assert_eq!(words.len(), 2 + 19);
    // Equal directories come first.
    let new = objects.own(
        "",
        &[("c", own(&lines('f', 19))), ("d", own(&lines('f', 20)))],
    );
    let mut words = compare(&objects, old, new);
    words.sort();
    assert_eq!(words, ["+c/f0018", "a to d", "b to c"]);
}

#[test]
fn a_directory_gives_way_to_parts_that_move_elsewhere() {
    let objects = Objects::default();
    let part = |letter| objects.own(&lines(letter, 130), &[]);
    let top = |text: &str, letters: &str| {
        let names: Vec<String> = letters.chars().map(String::from).collect();
        let parts: Vec<(&str, Oid)> = names
            .iter()
            .map(|name| (&**name, part(name.chars().next().unwrap())))
            .collect();
        objects.own(text, &parts)
    };
    let old = objects.own("", &[("old", top(&lines('z', 2), "abcde"))]);
    let new = objects.own(
        "",
        &[("n", top(&lines('z', 2), "abc")), ("o", top("", "de"))],
    );
    let mut words = compare(&objects, old, new);
    words.sort();
    let expected = [
        "+n",
        "+n/z0000",
        "+n/z0001",
        "+o",
        "-old",
        "-old/z0000",
        "-old/z0001",
    ];
    let moves = ["a to n/a", "b to n/b", "c to n/c", "d to o/d", "e to o/e"];
    let moves = moves.map(|each| format!("old/{each}"));
    assert_eq!(words[..7], expected);
    assert_eq!(words[7..], moves);
    // All but a small one stay together: they move as one.
    let new = objects.own(
        "",
        &[("n", top(&lines('z', 200), "abcd")), ("o", top("", "e"))],
    );
    let old = objects.own("", &[("old", top(&lines('z', 190), "abcde"))]);
    let words = compare(&objects, old, new);
    assert!(words.contains(&"old to n".to_string()), "{words:?}");
    assert!(words.contains(&"-n/e/e0000".to_string()), "{words:?}");
}

#[test]
fn a_hardlink_that_leads_out_of_a_directory_that_moves_is_seen_from_there() {
    let objects = Objects::default();
    let text = |link: &str, size: usize| lines('f', 9) + &format!("z\t{size}\t0\th{link}\n");
    let own = |text: &str| objects.own(text, &[]);
    let at =
        |directory: Oid| objects.own("a\t1\t0\n", &[("p", objects.own("", &[("d", directory)]))]);
    // Relative to the new path it would lead out of the module.
    let old = at(own(&text("../../a", 1)));
    let new = objects.own("a\t1\t0\n", &[("n", own(&text("../a", 1)))]);
    let words = compare(&objects, old, new);
    assert_eq!(words, ["p/d to n", "-p"]);
    let new = objects.own("a\t1\t0\n", &[("n", own(&text("f0000", 1)))]);
    let mut words = compare(&objects, old, new);
    words.sort();
    assert_eq!(words, ["-p", "p/d to n", "~n/z"]);
}

#[test]
fn a_few_trees_that_name_each_other_many_times_end_at_the_limit() {
    let objects = Objects::default();
    let mut tree = objects.own("", &[]);
    let calm = tree;
    for _ in 0..40 {
        tree = objects.own("", &[("a", tree), ("b", tree)]);
    }
    let rule = ": the snapshot has more than 500 entries";
    for (old, new) in [((calm, 10), (tree, 500)), ((tree, 500), (calm, 10))] {
        let message = compare_limited(&objects, old, new, usize::MAX)
            .unwrap_err()
            .to_string();
        assert!(message.ends_with(rule), "{message}");
    }
    let snapshot = objects.at(tree);
    let mut walk = Walk::new(&snapshot, EntryLimit::new(500));
    let message = loop {
        if let Err(error) = walk.next(&snapshot) {
            break error.to_string();
        }
    };
    assert!(message.ends_with(rule), "{message}");
    assert!(*objects.read.borrow() < 10_000);
}

#[test]
fn a_limit_is_used_up_to_the_last_entry() {
    let (here, there) = (RelPath::root(), RelPath::parse(b"there").unwrap());
    let mut limit = EntryLimit::new(3);
    limit.spend(3, &here).unwrap();
    limit.spend(0, &here).unwrap();
    let entries_error = limit.spend(1, &there).unwrap_err().to_string();
    assert_eq!(entries_error, "there: the snapshot has more than 3 entries");
    limit.spend_bytes((64 << 20) + 3 * 1024, &here).unwrap();
    let entries_error = limit.spend_bytes(1, &there).unwrap_err().to_string();
    assert_eq!(
        entries_error,
        "there: the manifests of 3 entries are longer than they can be"
    );
}

#[test]
fn pieces_are_read_in_the_order_of_what_they_hold() {
    let objects = Objects::default();
    let texts: [&[u8]; 4] = [b"b\t1\t0\n", b"m\t1\t0\n", b"x/\t0\n", b"z/\t0\nq\t1\t0\n"];
    let starts: [&[u8]; 4] = [b"b", b"m", b"x/", b"z/"];
    let keys = starts.map(piece_key);
    let blobs = texts.map(|text| objects.add(Kind::Blob, text));
    let items: Vec<(&[u8], Oid, bool)> = keys
        .iter()
        .zip(blobs)
        .map(|(key, oid)| (&key[..], oid, false))
        .collect();
    let first = objects.add(Kind::Blob, b"./\t0\na\t1\t0\n");
    let root = objects.tree(&[(b"m", first, false), (b"p", objects.tree(&items), true)]);
    let snapshot = objects.at(root);
    let mut walk = Walk::new(&snapshot, EntryLimit::new(8));
    let mut names = Vec::new();
    while let Some(listing) = walk.next(&snapshot).unwrap() {
        names.push((listing.path.as_bytes().to_vec(), listing.leaves.to_vec()));
    }
    let expected: [(&[u8], &[u8]); 3] = [
        (b"", b"a\t1\t0\nb\t1\t0\nm\t1\t0\n"),
        (b"x", b""),
        (b"z", b"q\t1\t0\n"),
    ];
    assert_eq!(
        names,
        expected.map(|(path, leaves)| (path.to_vec(), leaves.to_vec()))
    );
    let empty = objects.own("", &[]);
    let removals = compare(&objects, root, empty);
    assert_eq!(removals, ["-a", "-b", "-m", "-x", "-z", "-z/q"]);
}

#[test]
fn hardlink_groups_are_whole() {
    let objects = Objects::default();
    let check = |text| check_hardlinks(&objects.at(objects.own(text, &[])), 100);
    assert!(check("a\t1\t0\nb\t1\t0\tha\nd/\t0\nc\t1\t0\th../a\n").unwrap());
    assert!(!check("a\t1\t0\nb\t1\t0\n").unwrap());
    let check_paths = |text| {
        let snapshot = objects.at(objects.own(text, &[]));
        let paths = ["a", "b", "c", "d/c", "d"].map(|path| path.as_bytes().to_vec());
        check_hardlinks_at(&mut Lookup::new(snapshot, 100), &paths)
    };
    check_paths("a\t1\t0\nb\t1\t0\tha\nd/\t0\nc\t1\t0\th../a\n").unwrap();
    for (text, rule) in [
        (
            "a\t1\t0\nb\t1\t0\tha\nc\t1\t0\thb\n",
            "c: a hardlink to what is not the first file of a group: b",
        ),
        (
            "b\t1\t0\tha\n",
            "b: a hardlink to what is not the first file of a group: a",
        ),
        (
            "a\t1\t0\nb\t2\t0\tha\n",
            "b: a hardlink differs from its group: a",
        ),
        (
            "a\t1\t0\nb\t1\t0\tha\nc\t1\t9\tha\n",
            "c: a hardlink differs from its group: a",
        ),
    ] {
        assert_eq!(check(text).unwrap_err().to_string(), rule);
        assert_eq!(check_paths(text).unwrap_err().to_string(), rule);
    }
}

#[test]
fn what_the_reader_says_is_handed_on() {
    let objects = Objects::default();
    let (one, other) = (Oid::new([1; 20]), Oid::new([2; 20]));
    let error = compare_limited(&objects, (one, 1), (other, 1), 1).unwrap_err();
    assert!(matches!(error, Error::Lent(said) if said.to_string() == "not here"));
}

#[test]
fn directories_are_counted_once_and_again_only_where_they_changed() {
    let objects = Objects::default();
    let inner = objects.own("l\t>x\t0\nx\t3\t0\n", &[]);
    let shared = objects.own("", &[("f", inner)]);
    let root = objects.own("a\t1\t0\nd/\t7\nb\t10\t0\n", &[("e", shared)]);
    let changed = objects.own("a\t5\t0\n", &[("e", shared)]);
    let mut totals = SubtreeTotals::new(9);
    let mut count = |tree, path: &str, is_stopped: bool| {
        *objects.read.borrow_mut() = 0;
        let reader = &objects;
        let mut lookup = Lookup::new(Snapshot { reader, tree }, 99);
        let path = RelPath::trusted(path.as_bytes().to_vec());
        let sum = totals.count(&mut lookup, &path, &|| is_stopped).unwrap();
        let sum = sum.map(
            |Totals {
                 files,
                 symlinks,
                 bytes,
             }| (files, symlinks, bytes),
        );
        (sum, *objects.read.borrow())
    };
    assert_eq!(count(root, "", true).0, None);
    assert_eq!(count(root, "d", true).0, Some((1, 0, 10)));
    // The trees of the root and two below it, and their manifests.
    assert_eq!(count(root, "", false), (Some((3, 1, 14)), 6));
    assert_eq!(count(root, "", true), (Some((3, 1, 14)), 0));
    assert_eq!(count(changed, "", false), (Some((2, 1, 8)), 2));
    assert_eq!(count(changed, "e", true).0, Some((1, 1, 3)));
}
