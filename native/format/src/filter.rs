//! rsync's filter rules as data: which paths are mirrored, and which are kept from deletion.
//!
//! The first rule of a side that matches decides, a path that no rule matches is included, and all
//! below an excluded directory is excluded.

use std::sync::Arc;

use crate::entry::{Body, Entry};
use crate::path::RelPath;
use crate::pattern::Pattern;

/// What a rule decides about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// What is mirrored.
    Sender,
    /// What may be deleted.
    Receiver,
    /// Both.
    Both,
}

/// A rule as it was parsed.
#[derive(Debug, Clone)]
pub struct Rule {
    side: Side,
    include: bool,
    negated: bool,
    pattern: Pattern,
}

impl Rule {
    /// Includes or excludes what `pattern`, with its slashes as written, matches; with `negated`,
    /// what it does not match.
    pub fn new(side: Side, include: bool, negated: bool, pattern: &[u8]) -> Self {
        Self {
            side,
            include,
            negated,
            pattern: Pattern::new(pattern),
        }
    }

    fn applies(&self, side: Side, path: &[u8], directory: bool) -> bool {
        self.is_of(side) && self.pattern.matches(path, directory) != self.negated
    }

    fn is_of(&self, side: Side) -> bool {
        self.side == side || self.side == Side::Both
    }
}

/// Rules in order.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    rules: Vec<Rule>,
}

impl Filter {
    /// Of `rules`, none of which may be missing: they are known by their places.
    pub fn new(rules: Vec<Rule>) -> Self {
        Self { rules }
    }

    /// Whether there is no rule.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// True if `path` is mirrored, if the directories above it are.
    fn includes(&self, path: &[u8], directory: bool) -> bool {
        let decide = || self.decide(path, directory, Side::Sender);
        path.is_empty() || decide().is_none_or(|(_, rule)| rule.include)
    }

    /// Whether `path`, which the upstream does not have, is kept from deletion.
    pub fn protects(&self, path: &[u8], directory: bool) -> bool {
        let decide = || self.decide(path, directory, Side::Receiver);
        !path.is_empty() && decide().is_some_and(|(_, rule)| !rule.include)
    }

    /// The place of the rule that decides about `path`, and what it matched: `path` or the
    /// uppermost directory above it that is excluded.
    pub fn why<'a>(&self, path: &'a [u8], directory: bool) -> Option<(usize, &'a [u8])> {
        let found = |path: &'a [u8], directory| {
            let found = self.decide(path, directory, Side::Sender);
            found.map(|(place, rule)| (place, rule.include, path))
        };
        let excluded = above(path)
            .filter_map(|above| found(above, true))
            .find(|(_, include, _)| !include);
        let own = || (!path.is_empty()).then(|| found(path, directory)).flatten();
        excluded.or_else(own).map(|(place, _, path)| (place, path))
    }

    /// Whether it decides alike below two directories, whatever they hold; false if in doubt.
    pub fn is_alike_below(&self, one: &[u8], other: &[u8]) -> bool {
        let mut senders = self.rules.iter().filter(|rule| rule.is_of(Side::Sender));
        one == other || senders.all(|rule| rule.pattern.is_blind_below([one, other]))
    }

    fn decide(&self, path: &[u8], directory: bool, side: Side) -> Option<(usize, &Rule)> {
        let mut rules = self.rules.iter().enumerate();
        rules.find(|(_, rule)| rule.applies(side, path, directory))
    }
}

/// The directories above a path, the uppermost first, without the module's own.
fn above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    slashes.filter_map(|(at, _)| path.get(..at))
}

/// The one that says what a filter selects, of paths that come in tree order or nearly so: it
/// remembers the directories on the way to the last one.
#[derive(Debug)]
pub struct Selector {
    /// Its rules.
    pub filter: Arc<Filter>,
    path: Vec<u8>,
    /// Where in `path` each directory ends, and whether it is mirrored.
    known: Vec<(usize, bool)>,
}

impl Selector {
    /// Remembers nothing yet.
    pub fn new(filter: Arc<Filter>) -> Self {
        Self {
            filter,
            path: Vec::new(),
            known: Vec::new(),
        }
    }

    /// True if `path` and all directories above it are mirrored.
    pub fn reaches(&mut self, path: &[u8], directory: bool) -> bool {
        if self.filter.is_empty() || path.is_empty() {
            return true;
        }
        if directory {
            return self.reaches_directory(path);
        }
        self.filter.includes(path, false) && self.reaches(crate::path::parent(path), true)
    }

    /// `entry` of a directory that is mirrored, if it is mirrored itself; a hardlink whose leader is
    /// left out becomes a file of its own.
    pub fn admitted<'a>(&mut self, directory: &RelPath, mut entry: Entry<'a>) -> Option<Entry<'a>> {
        if self.filter.is_empty() || matches!(entry.body, Body::Directory) {
            return Some(entry);
        }
        let path = directory.join(&entry.name);
        if !self.filter.includes(path.as_bytes(), false) {
            return None;
        }
        if let Body::File { link, .. } = &mut entry.body {
            let leader = link.take();
            *link = leader.filter(|leader| self.reaches(leader.as_bytes(), false));
        }
        Some(entry)
    }

    fn reaches_directory(&mut self, path: &[u8]) -> bool {
        let ends = |end: usize| end == path.len() || path.get(end) == Some(&b'/');
        let is_above = |end: usize| ends(end) && self.path.get(..end) == path.get(..end);
        while self.known.last().is_some_and(|(end, _)| !is_above(*end)) {
            self.known.pop();
        }
        let (begin, mut reached) = self.known.last().copied().unwrap_or((0, true));
        for end in above(path).map(<[u8]>::len).chain([path.len()]) {
            if end > begin {
                let above = path.get(..end).unwrap_or_default();
                reached = reached && self.filter.includes(above, true);
                self.known.push((end, reached));
            }
        }
        self.path.clear();
        self.path.extend_from_slice(path);
        reached
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::{Filter, Rule, Selector, Side};

    fn filter(patterns: &[String]) -> Filter {
        let rule = |text: &String| {
            let pattern = text.trim_start_matches('+');
            let include = pattern.len() < text.len();
            Rule::new(Side::Both, include, false, pattern.as_bytes())
        };
        Filter::new(patterns.iter().map(rule).collect())
    }

    proptest! {
        #[test]
        fn a_path_is_mirrored_unless_the_rule_that_decides_excludes(
            rules in proptest::collection::vec("[+]?/?[abc*]{1,2}(/[ab*]{1,2})?/?", 0..5),
            paths in proptest::collection::vec("[abc]{1,2}(/[abc]{1,2}){0,4}", 1..20),
        ) {
            let filter = Arc::new(filter(&rules));
            let mut selector = Selector::new(Arc::clone(&filter));
            for path in &paths {
                for directory in [true, false] {
                    let included = filter
                        .why(path.as_bytes(), directory)
                        .is_none_or(|(place, _)| rules.get(place).is_some_and(|rule| rule.starts_with('+')));
                    prop_assert_eq!(selector.reaches(path.as_bytes(), directory), included);
                }
            }
        }
    }
}
