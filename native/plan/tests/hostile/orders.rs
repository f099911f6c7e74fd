//! Checks publish rules: a pattern matches by its definition, and `stage` gives the stage of
//! `placement`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use huai_format::path::{RelPath, basename, parent, path_order};
use huai_format::snapshots::Snapshot;
use huai_format::write::{Layout, ListingText};
use huai_plan::order::{Marker, NameLookup, Order, Profile, StagePattern, StageRule, Table, first};

use super::model::Objects;

const RULES: usize = 24;
const PATHS: usize = 32;
/// The longest pattern or path: the cost of the definition grows with its components.
const LONG: usize = 40;

/// A line: the kind in its first byte, and its text.
struct Line<'a> {
    group: u8,
    stage: u8,
    symlinks: bool,
    text: &'a [u8],
}

/// Check that patterns match by their definition, and that `stage` and `placement` agree, for
/// rules, one per line, and paths of files.
pub(crate) fn order(rules: &[u8], paths: &[u8]) {
    let mut lines: Vec<_> = lines(rules).take(RULES).map(line).collect();
    lines.sort_by_key(|line| line.group);
    let paths: BTreeSet<_> = self::lines(paths).take(PATHS).filter_map(path).collect();
    for line in lines.iter().filter(|line| line.group < PLACES) {
        for path in &paths {
            as_defined(line, path);
        }
    }
    let objects = Objects::default();
    let tree = tree_of(&paths, &objects);
    let order = || {
        let snapshot = Snapshot {
            reader: &objects,
            tree,
        };
        Order::new(table(&lines), NameLookup::new(snapshot, 1 << 20))
    };
    let (mut quick, mut whole) = (order(), order());
    for path in &paths {
        for symlink in [false, true] {
            let placement = whole.placement(path, symlink).unwrap();
            let stage = quick.stage(path, symlink).unwrap();
            assert_eq!(stage, placement.stage, "{path:?} {symlink}");
            let alone = order().placement(path, symlink).unwrap();
            assert_eq!(
                (alone.stage, alone.rule),
                (placement.stage, placement.rule),
                "{path:?} {symlink}"
            );
        }
    }
}

/// The kinds of lines: volatile, stated, generic, two profiles, markers, assigned tops.
const PLACES: u8 = 5;
const MARKERS: Range<u8> = 5..7;

/// Parse a line: the kind and the stage from its first byte, and at most `LONG` bytes of text.
fn line(line: &[u8]) -> Line<'_> {
    let (first, text) = line.split_first().unwrap_or((&0, b""));
    Line {
        group: first % 8,
        stage: first >> 3 & 3,
        symlinks: first & 64 != 0,
        text: &text[..text.len().min(LONG)],
    }
}

fn table(lines: &[Line<'_>]) -> Table {
    let rules = lines.iter().filter(|line| line.group < PLACES);
    let rules: Vec<_> = rules.collect();
    let range = |group: u8| {
        let begin = rules.partition_point(|line| line.group < group);
        begin..rules.partition_point(|line| line.group <= group)
    };
    let profile = |number: u8| {
        let markers = lines
            .iter()
            .filter(|line| line.group == MARKERS.start + number);
        Profile {
            tops: markers.map(|line| vec![Marker::new(line.text)]).collect(),
            rules: range(3 + number),
        }
    };
    let assigned = lines.iter().filter(|line| line.group == MARKERS.end);
    let assigned = assigned.map(|line| {
        let profile = usize::from(line.stage);
        (line.text.to_vec(), (profile < 2).then_some(profile))
    });
    Table {
        volatile: range(0),
        stated: range(1),
        generic: range(2),
        profiles: vec![profile(0), profile(1)],
        assigned: assigned.collect::<HashMap<_, _>>(),
        rules: rules.iter().map(|line| rule(line)).collect(),
    }
}

fn rule(line: &Line<'_>) -> StageRule {
    StageRule {
        pattern: pattern(line),
        stage: line.stage,
    }
}

fn pattern(line: &Line<'_>) -> StagePattern {
    StagePattern::new(line.text.split(|&byte| byte == b'/'), line.symlinks)
}

/// Make a snapshot of these files, except those with others below them.
fn tree_of(paths: &BTreeSet<Vec<u8>>, mut objects: &Objects) -> huai_git::oid::Oid {
    let mut listings: BTreeMap<Vec<u8>, BTreeSet<&[u8]>> =
        BTreeMap::from([(vec![], BTreeSet::new())]);
    for path in paths {
        let mut above = parent(path);
        while !above.is_empty() {
            listings.entry(above.to_vec()).or_default();
            above = parent(above);
        }
    }
    let directories: BTreeSet<_> = listings.keys().cloned().collect();
    for path in paths.iter().filter(|path| !directories.contains(*path)) {
        let listing = listings.entry(parent(path).to_vec()).or_default();
        listing.insert(basename(path));
    }
    let mut listings: Vec<_> = listings.into_iter().collect();
    listings.sort_by(|one, other| path_order(&one.0, &other.0));
    let mut layout = Layout::default();
    for (path, names) in &listings {
        let leaves: Vec<_> = names
            .iter()
            .flat_map(|name| [&name[..], b"\t1\t1\n"].concat())
            .collect();
        let digests = vec![0; names.len() * 32];
        let listing = ListingText {
            path,
            attributes: b"1",
            leaves: &leaves,
            digests: &digests,
        };
        layout.add(&listing, &mut objects).unwrap();
    }
    layout.finish(&mut objects).unwrap()
}

/// Check that a pattern matches by its definition.
fn as_defined(line: &Line<'_>, path: &[u8]) {
    let parts: Vec<_> = line.text.split(|&byte| byte == b'/').collect();
    let names: Vec<_> = path.split(|&byte| byte == b'/').collect();
    for symlink in [false, true] {
        let is_match = first([&pattern(line)], path, symlink).is_some();
        let defined = (symlink || !line.symlinks) && fits(&parts, &names);
        assert_eq!(is_match, defined, "{:?} {path:?}", line.text);
    }
}

/// Return true if `parts` match all `names`, by the definition of a pattern.
fn fits(parts: &[&[u8]], names: &[&[u8]]) -> bool {
    match (parts, names) {
        ([], _) => names.is_empty(),
        ([b"**"], _) => !names.is_empty(),
        ([b"**", after @ ..], _) => {
            fits(after, names) || (!names.is_empty() && fits(parts, &names[1..]))
        }
        ([glob, after @ ..], [name, further @ ..]) => is_like(glob, name) && fits(after, further),
        _ => false,
    }
}

/// Match a glob in which `*` stands for any bytes of a name, and `?` for one.
fn is_like(glob: &[u8], name: &[u8]) -> bool {
    let mut ends = vec![false; name.len() + 1];
    ends[0] = true;
    for byte in glob {
        if *byte == b'*' {
            for end in 1..ends.len() {
                ends[end] |= ends[end - 1];
            }
        } else {
            for end in (1..ends.len()).rev() {
                ends[end] = ends[end - 1] && (*byte == b'?' || *byte == name[end - 1]);
            }
            ends[0] = false;
        }
    }
    ends[name.len()]
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
}

/// Parse a path whose names need no escape; `None` for another one.
fn path(line: &[u8]) -> Option<Vec<u8>> {
    let path = RelPath::parse(&line[..line.len().min(LONG)]).ok()?;
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'"');
    let path = path.as_bytes().to_vec();
    (!path.is_empty() && path.iter().all(is_plain)).then_some(path)
}
