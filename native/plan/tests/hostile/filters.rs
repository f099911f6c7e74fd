//! Checks that selections and predictions of a filter follow its rules.

use std::sync::Arc;

use huai_format::path::RelPath;
use huai_plan::filter::{Filter, Rule, Selector, Side};

/// More rules than a person writes; the cost of a rule grows with their number.
const RULES: usize = 64;
const PATHS: usize = 64;

/// Check that `reaches` decides as `why`, and alike where `is_alike_below` says so, for rules, one
/// per line, and paths; a slash at its end makes a path a directory.
pub(crate) fn filter(text: &[u8], paths: &[u8]) {
    let rules: Vec<_> = lines(text).take(RULES).map(rule).collect();
    let included: Vec<_> = rules.iter().map(|(_, include)| *include).collect();
    let filter = Filter::new(rules.into_iter().map(|(rule, _)| rule).collect());
    let paths: Vec<_> = lines(paths).filter_map(path).take(PATHS).collect();
    let mut selector = Selector::new(Arc::new(filter));
    for (path, directory) in &paths {
        let reached = selector.reaches(path, *directory);
        let reason = selector.filter.why(path, *directory);
        let decided = reason.is_none_or(|(place, _)| included[place]);
        assert_eq!(decided, reached, "{path:?}");
        let matched = reason.map_or(&[][..], |(_, matched)| matched);
        assert!(path.starts_with(matched), "{path:?}");
        let _ = selector.filter.protects(path, *directory);
    }
    for pair in paths.windows(3) {
        alike(&mut selector, [&pair[0].0, &pair[1].0], &pair[2]);
    }
}

/// Check that `inside` is decided alike in two mirrored directories that the filter calls
/// alike.
fn alike(selector: &mut Selector, above: [&[u8]; 2], inside: &(Vec<u8>, bool)) {
    let mirrored = above.iter().all(|above| selector.reaches(above, true));
    if mirrored && selector.filter.is_alike_below(above[0], above[1]) {
        let [one, other] = above.map(|above| {
            let path = RelPath::trusted(above.to_vec()).join(&inside.0);
            selector.reaches(path.as_bytes(), inside.1)
        });
        assert_eq!(one, other, "{above:?} {inside:?}");
    }
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
}

/// Parse the kind of a rule from the first byte, and its pattern; true if it includes.
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

/// Parse a path, and true if it is a directory; `None` if it is invalid, or the root.
fn path(line: &[u8]) -> Option<(Vec<u8>, bool)> {
    let plain = line.strip_suffix(b"/").unwrap_or(line);
    let checked = RelPath::parse(plain).ok().filter(|path| !path.is_root())?;
    Some((checked.as_bytes().to_vec(), plain.len() < line.len()))
}
