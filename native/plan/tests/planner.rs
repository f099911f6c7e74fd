//! Checks the plan for a path, by the wanted and the local entry.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use huai_plan::candidates::Attribute;
use huai_plan::candidates::{
    Candidates, EntryKind, LocalState, LocalStatus, Number, Operations, Planned, Span, Stated,
    StatedMode,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum There {
    Nothing,
    A(EntryKind),
    Special,
    /// The wanted type; a file if nothing is wanted.
    Same,
}

use There::{A, Nothing, Same, Special};

/// A local entry, and its differences besides the type.
type Case = (&'static str, There, &'static [Attribute]);

const HERE: [Case; 8] = [
    ("nothing", Nothing, &[]),
    ("a file", A(EntryKind::File), &[]),
    ("a directory", A(EntryKind::Directory), &[]),
    ("a symlink", A(EntryKind::Symlink), &[]),
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
enum WantedEntry {
    Nothing,
    File,
    Directory,
    Symlink,
    Hardlink,
}

/// The lists that a path gets into; in the last three the type is the same.
const TABLE: [(WantedEntry, [&str; HERE.len()]); 5] = [
    (
        WantedEntry::Nothing,
        [
            "", "removals", "removals", "removals", "removals", "removals", "removals", "removals",
        ],
    ),
    (
        WantedEntry::File,
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
        WantedEntry::Directory,
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
        WantedEntry::Symlink,
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
        WantedEntry::Hardlink,
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

impl WantedEntry {
    fn kind(self) -> Option<EntryKind> {
        match self {
            Self::Nothing => None,
            Self::File | Self::Hardlink => Some(EntryKind::File),
            Self::Directory => Some(EntryKind::Directory),
            Self::Symlink => Some(EntryKind::Symlink),
        }
    }
}

/// Add a row for `path`; returns its number.
fn add(
    table: &mut Candidates,
    path: &str,
    wanted: Option<(EntryKind, &str)>,
    there: There,
    differing: &[Attribute],
) -> Number {
    let path = table.add_text(path.as_bytes()).unwrap();
    let size = u64::from(differing.contains(&Attribute::Size));
    let state = wanted.map(|(kind, other)| Stated {
        kind,
        mode: StatedMode {
            bits: 0o644,
            stated: 0o644,
            kept: false,
        },
        owner: 0,
        group: 0,
        mtime: 0,
        size,
        other: table.add_text(other.as_bytes()).unwrap(),
        digest: Span::default(),
    });
    let something = |kind| LocalState::Something {
        seen: LocalStatus {
            kind,
            links: 1,
            ..LocalStatus::default()
        },
        target: Span::default(),
        named: false,
    };
    let wanted_kind = state.map_or(EntryKind::File, |state| state.kind);
    let local = match there {
        Nothing => LocalState::Nothing,
        A(kind) => something(Some(kind)),
        Special => something(None),
        Same => something(Some(wanted_kind)),
    };
    let is_other = matches!(there, A(kind) if state.is_some() && kind != wanted_kind);
    table.push(path, state, &[], local);
    let row = table.rows_mut().last_mut().unwrap();
    row.differing.add_if(Attribute::Type, is_other);
    for attribute in differing {
        row.differing.add_if(*attribute, true);
    }
    Number::try_from(table.rows().len() - 1).unwrap()
}

/// Return the lists of a plan, in the order in which they are carried out.
fn lists(planned: &Planned, stages: &[Operations]) -> Vec<(&'static str, Vec<Number>)> {
    let mut all_lists = vec![
        ("clear", planned.clear.clone()),
        ("make", planned.make.clone()),
    ];
    for stage in stages {
        all_lists.extend([
            ("fetches", stage.fetches.clone()),
            ("links", stage.links.clone()),
            ("symlinks", stage.symlinks.clone()),
            ("attributes", stage.attributes.clone()),
        ]);
    }
    all_lists.push(("removals", planned.removals.clone()));
    all_lists.push(("directories", planned.directories.clone()));
    all_lists.retain(|(_, numbers)| !numbers.is_empty());
    all_lists
}

#[test]
fn each_thing_that_is_wanted_where_each_thing_is() {
    for (wanted, expected) in TABLE {
        for ((name, there, differing), expected) in HERE.into_iter().zip(expected) {
            let mut table = Candidates::default();
            let kind = wanted.kind();
            let other = if wanted == WantedEntry::Hardlink {
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
            let contents = lists(&planned, &stages);
            let contents: Vec<_> = contents.into_iter().map(|(list, _)| list).collect();
            assert_eq!(contents.join(" "), expected, "{wanted:?} {name}");
        }
    }
}

#[test]
fn each_list_has_an_order() {
    let mut table = Candidates::default();
    let directory = A(EntryKind::Directory);
    let file = A(EntryKind::File);
    let entry = |kind| Some((kind, ""));
    let other = &[Attribute::Size][..];
    let removed = [
        add(&mut table, "gone", None, directory, &[]),
        add(&mut table, "gone/in", None, directory, &[]),
        add(&mut table, "gone/in/file", None, file, &[]),
    ];
    let cleared = [
        add(&mut table, "was", entry(EntryKind::File), directory, &[]),
        add(&mut table, "was/in", None, file, &[]),
    ];
    let created = [
        add(&mut table, "new", entry(EntryKind::Directory), Nothing, &[]),
        add(
            &mut table,
            "new/in",
            entry(EntryKind::Directory),
            Nothing,
            &[],
        ),
    ];
    let replaced = add(&mut table, "a", entry(EntryKind::File), file, other);
    let fetched = add(&mut table, "z", entry(EntryKind::File), Nothing, &[]);
    let planned = Planned::of(&table);
    let stages = planned.in_stages(&table, 1, &vec![0; planned.len()]);
    let expected = vec![
        ("clear", vec![cleared[1], cleared[0]]),
        ("make", created.to_vec()),
        ("fetches", vec![cleared[0], fetched, replaced]),
        ("removals", vec![removed[2], removed[1], removed[0]]),
        ("directories", vec![created[1], created[0]]),
    ];
    let mut all_lists = lists(&planned, &stages);
    // The cleared entry has another type than the replaced file.
    all_lists[2].1.sort_by_key(|number| *number != cleared[0]);
    assert_eq!(all_lists, expected);
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
            let file = A(EntryKind::File);
            add(
                &mut table,
                "leader",
                Some((EntryKind::File, "")),
                file,
                differing,
            );
            let local = if is_there { file } else { Nothing };
            let number = add(
                &mut table,
                "link",
                Some((EntryKind::File, "leader")),
                local,
                &[],
            );
            let planned = Planned::of(&table);
            let stage = |place| match planned.path_for_stage(&table, place).unwrap() {
                (b"leader", false) => leader,
                (b"link", false) => link,
                other => panic!("{other:?}"),
            };
            let stages: Vec<_> = (0..planned.len()).map(stage).collect();
            let in_stages = planned.in_stages(&table, 2, &stages);
            let links: Vec<_> = in_stages.iter().map(|stage| stage.links.clone()).collect();
            let mut expected_links = [vec![], vec![]];
            expected_links[expected].extend(vec![number; count]);
            assert_eq!(
                links, expected_links,
                "{leader} {link} {is_there} {differing:?}"
            );
        }
    }
}
