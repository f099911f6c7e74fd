//! The plan for a path, by what is wanted there and what is there.

use huai_tree::candidates::{
    Candidates, Here, Kind, Mode, Number, Operations, Planned, Seen, Span, Stated,
};
use huai_tree::compare::differing::Attribute;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum There {
    Nothing,
    A(Kind),
    Special,
    /// The type that is wanted; a file where nothing is wanted.
    Same,
}

use There::{A, Nothing, Same, Special};

/// The entry that is there, and how it differs besides its type.
type Case = (&'static str, There, &'static [Attribute]);

const HERE: [Case; 8] = [
    ("nothing", Nothing, &[]),
    ("a file", A(Kind::File), &[]),
    ("a directory", A(Kind::Directory), &[]),
    ("a symlink", A(Kind::Symlink), &[]),
    ("a fifo", Special, &[]),
    ("another mode", Same, &[Attribute::Mode]),
    (
        "another content",
        Same,
        &[Attribute::Size, Attribute::Target],
    ),
    ("another link", Same, &[Attribute::Link]),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Nothing,
    File,
    Directory,
    Symlink,
    Hardlink,
}

/// The lists that a path gets into; the last three: the same type is there.
const TABLE: [(Wanted, [&str; HERE.len()]); 5] = [
    (
        Wanted::Nothing,
        [
            "", "removals", "removals", "removals", "removals", "removals", "removals", "removals",
        ],
    ),
    (
        Wanted::File,
        [
            "fetches",
            "",
            "clear fetches",
            "fetches",
            "fetches",
            "attributes",
            "fetches",
            "fetches",
        ],
    ),
    (
        Wanted::Directory,
        [
            "make directories",
            "clear make directories",
            "",
            "clear make directories",
            "clear make directories",
            "directories",
            "directories",
            "directories",
        ],
    ),
    (
        Wanted::Symlink,
        [
            "symlinks",
            "symlinks",
            "clear symlinks",
            "",
            "symlinks",
            "attributes",
            "symlinks",
            "attributes",
        ],
    ),
    (
        Wanted::Hardlink,
        [
            "links",
            "",
            "clear links",
            "links",
            "links",
            "",
            "",
            "links",
        ],
    ),
];

impl Wanted {
    fn kind(self) -> Option<Kind> {
        match self {
            Self::Nothing => None,
            Self::File | Self::Hardlink => Some(Kind::File),
            Self::Directory => Some(Kind::Directory),
            Self::Symlink => Some(Kind::Symlink),
        }
    }
}

/// A row for `path`; returns its number.
fn add(
    table: &mut Candidates,
    path: &str,
    wanted: Option<(Kind, &str)>,
    there: There,
    differing: &[Attribute],
) -> Number {
    let path = table.put(path.as_bytes()).unwrap();
    let size = u64::from(differing.contains(&Attribute::Size));
    let wanted = wanted.map(|(kind, other)| Stated {
        kind,
        mode: Mode {
            bits: 0o644,
            stated: 0o644,
            kept: false,
        },
        owner: 0,
        group: 0,
        mtime: 0,
        size,
        other: table.put(other.as_bytes()).unwrap(),
        digest: Span::default(),
    });
    let something = |kind| Here::Something {
        seen: Seen::of(kind),
        target: Span::default(),
        named: false,
    };
    let wanted_kind = wanted.map_or(Kind::File, |wanted| wanted.kind);
    let here = match there {
        Nothing => Here::Nothing,
        A(kind) => something(Some(kind)),
        Special => something(None),
        Same => something(Some(wanted_kind)),
    };
    let is_other = matches!(there, A(kind) if wanted.is_some() && kind != wanted_kind);
    table.push(path, wanted, &[], here);
    let row = table.rows_mut().last_mut().unwrap();
    row.differing.add_if(Attribute::Type, is_other);
    for attribute in differing {
        row.differing.add_if(*attribute, true);
    }
    Number::try_from(table.rows().len() - 1).unwrap()
}

/// The lists of a plan, in the order in which they are carried out.
fn lists(planned: &Planned, stages: &[Operations]) -> Vec<(&'static str, Vec<Number>)> {
    let mut found = vec![
        ("clear", planned.clear.clone()),
        ("make", planned.make.clone()),
    ];
    for stage in stages {
        found.extend([
            ("fetches", stage.fetches.clone()),
            ("links", stage.links.clone()),
            ("symlinks", stage.symlinks.clone()),
            ("attributes", stage.attributes.clone()),
        ]);
    }
    found.push(("removals", planned.removals.clone()));
    found.push(("directories", planned.directories.clone()));
    found.retain(|(_, numbers)| !numbers.is_empty());
    found
}

#[test]
fn each_thing_that_is_wanted_where_each_thing_is() {
    for (wanted, expected) in TABLE {
        for ((name, there, differing), expected) in HERE.into_iter().zip(expected) {
            let mut table = Candidates::default();
            let kind = wanted.kind();
            let other = if wanted == Wanted::Hardlink {
                "leader"
            } else {
                ""
            };
            add(
                &mut table,
                "path",
                kind.map(|kind| (kind, other)),
                there,
                differing,
            );
            let planned = Planned::of(&table);
            let stages = planned.in_stages(&table, 1, &vec![0; planned.len()]);
            let found = lists(&planned, &stages);
            let found: Vec<_> = found.into_iter().map(|(list, _)| list).collect();
            assert_eq!(found.join(" "), expected, "{wanted:?} {name}");
        }
    }
}

#[test]
fn each_list_has_an_order() {
    let mut table = Candidates::default();
    let directory = A(Kind::Directory);
    let file = A(Kind::File);
    let wanted = |kind| Some((kind, ""));
    let other = &[Attribute::Size][..];
    let gone = [
        add(&mut table, "gone", None, directory, &[]),
        add(&mut table, "gone/in", None, directory, &[]),
        add(&mut table, "gone/in/file", None, file, &[]),
    ];
    let cleared = [
        add(&mut table, "was", wanted(Kind::File), directory, &[]),
        add(&mut table, "was/in", None, file, &[]),
    ];
    let made = [
        add(&mut table, "new", wanted(Kind::Directory), Nothing, &[]),
        add(&mut table, "new/in", wanted(Kind::Directory), Nothing, &[]),
    ];
    let replaced = add(&mut table, "a", wanted(Kind::File), file, other);
    let fetched = add(&mut table, "z", wanted(Kind::File), Nothing, &[]);
    let planned = Planned::of(&table);
    let stages = planned.in_stages(&table, 1, &vec![0; planned.len()]);
    let expected = vec![
        ("clear", vec![cleared[1], cleared[0]]),
        ("make", made.to_vec()),
        ("fetches", vec![cleared[0], fetched, replaced]),
        ("removals", vec![gone[2], gone[1], gone[0]]),
        ("directories", vec![made[1], made[0]]),
    ];
    let mut found = lists(&planned, &stages);
    // What stood there is cleared, and is something else than a file that is replaced.
    found[2].1.sort_by_key(|number| *number != cleared[0]);
    assert_eq!(found, expected);
}

#[test]
fn a_hardlink_comes_no_earlier_than_its_leader_and_again_when_that_is_replaced() {
    for (leader, link, expected) in [(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 1)] {
        for (is_there, differing, count) in [
            (false, &[Attribute::Size][..], 1),
            (true, &[Attribute::Size], 1),
            (true, &[], 0),
        ] {
            let mut table = Candidates::default();
            let file = A(Kind::File);
            add(
                &mut table,
                "leader",
                Some((Kind::File, "")),
                file,
                differing,
            );
            let there = if is_there { file } else { Nothing };
            let number = add(&mut table, "link", Some((Kind::File, "leader")), there, &[]);
            let planned = Planned::of(&table);
            let stage = |place| match planned.asked(&table, place).unwrap() {
                (b"leader", false) => leader,
                (b"link", false) => link,
                other => panic!("{other:?}"),
            };
            let stages: Vec<_> = (0..planned.len()).map(stage).collect();
            let found = planned.in_stages(&table, 2, &stages);
            let links: Vec<_> = found.iter().map(|stage| stage.links.clone()).collect();
            let mut wanted = [vec![], vec![]];
            wanted[expected].extend(vec![number; count]);
            assert_eq!(links, wanted, "{leader} {link} {is_there} {differing:?}");
        }
    }
}
