//! Filter rules and paths: what is remembered or foretold is what is decided.

use huai_format::filter::{Filter, Reached, Rule, Side};
use huai_format::path::RelPath;

/// More than a person writes; what a rule costs grows with each.
const RULES: usize = 64;
const PATHS: usize = 64;

/// Rules, a line each, and paths; a slash at its end makes a path a directory.
pub(crate) fn filter(text: &[u8], paths: &[u8]) {
    let rules: Vec<_> = lines(text).take(RULES).map(rule).collect();
    let included: Vec<_> = rules.iter().map(|(_, include)| *include).collect();
    let filter = Filter::new(rules.into_iter().map(|(rule, _)| rule).collect());
    let paths: Vec<_> = lines(paths).filter_map(path).take(PATHS).collect();
    let mut reached = Reached::default();
    for (path, directory) in &paths {
        let whole = filter.reaches(path, *directory);
        let remembered = if *directory {
            reached.directory(&filter, path)
        } else {
            reached.leaf(&filter, path)
        };
        assert_eq!(remembered, whole, "{path:?}");
        let reason = filter.why(path, *directory);
        let decided = reason.is_none_or(|(place, _)| included[place]);
        assert_eq!(decided, whole, "{path:?}");
        let matched = reason.map_or(&[][..], |(_, matched)| matched);
        assert!(path.starts_with(matched), "{path:?}");
        let _ = filter.protects(path, *directory);
    }
    for pair in paths.windows(3) {
        alike(&filter, [&pair[0].0, &pair[1].0], &pair[2]);
    }
}

/// `inside` is decided alike in two directories that the filter says are alike.
fn alike(filter: &Filter, above: [&[u8]; 2], inside: &(Vec<u8>, bool)) {
    if filter.is_alike_below(above[0], above[1]) {
        let [one, other] = above.map(|above| {
            let path = RelPath::trusted(above.to_vec()).join(&inside.0);
            filter.includes(path.as_bytes(), inside.1)
        });
        assert_eq!(one, other, "{above:?} {inside:?}");
    }
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
}

/// What the first byte says, and the pattern behind it; and whether it includes.
fn rule(line: &[u8]) -> (Rule, bool) {
    let (first, pattern) = line.split_first().unwrap_or((&0, b""));
    let side = match first >> 2 & 3 {
        0 => Side::Sender,
        1 => Side::Receiver,
        _ => Side::Both,
    };
    let include = first & 1 != 0;
    let negated = first & 2 != 0;
    (Rule::new(side, include, negated, pattern), include)
}

fn path(line: &[u8]) -> Option<(Vec<u8>, bool)> {
    let plain = line.strip_suffix(b"/").unwrap_or(line);
    let checked = RelPath::parse(plain).ok().filter(|path| !path.is_root())?;
    Some((checked.as_bytes().to_vec(), plain.len() < line.len()))
}
