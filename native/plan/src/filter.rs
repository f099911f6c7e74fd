//! rsync's filter rules as data: which paths are mirrored, and which are kept from deletion.
//!
//! The first matching rule of a side decides, a path without a matching rule is included, and
//! everything below an excluded directory is excluded.

use std::sync::Arc;

use huai_format::entries::{Body, Entry};
use huai_format::path::RelPath;

use crate::pattern::Pattern;

/// The decision that a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Mirroring.
    Sender,
    /// Deletion.
    Receiver,
    /// Both.
    Both,
}

/// A parsed rule.
#[derive(Debug, Clone)]
pub struct Rule {
    side: Side,
    include: bool,
    negated: bool,
    pattern: Pattern,
}

impl Rule {
    /// Include, or else exclude, paths that match `pattern`, given with its slashes; with `negated`, paths that do
    /// not match.
    pub fn new(side: Side, include: bool, negated: bool, pattern: &[u8]) -> Self {
        Self {
            side,
            include,
            negated,
            pattern: Pattern::new(pattern),
        }
    }

    fn applies(&self, side: Side, path: &[u8], is_directory: bool) -> bool {
        self.is_of(side) && self.pattern.matches(path, is_directory) != self.negated
    }

    fn is_of(&self, side: Side) -> bool {
        self.side == side || self.side == Side::Both
    }
}

/// An ordered list of rules.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    rules: Vec<Rule>,
}

impl Filter {
    /// Make a filter; the positions of `rules` identify them.
    pub fn new(rules: Vec<Rule>) -> Self {
        Self { rules }
    }

    /// Return true if there are no rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Return true if `path` is mirrored, provided that the directories above it are; true if no
    /// rule matches.
    fn includes(&self, path: &[u8], is_directory: bool) -> bool {
        let decide = || self.decide(path, is_directory, Side::Sender);
        path.is_empty() || decide().is_none_or(|(_, rule)| rule.include)
    }

    /// Return true if an exclude rule protects `path`, which the upstream does not have, from
    /// deletion; the directories above it are not looked at.
    pub fn protects(&self, path: &[u8], is_directory: bool) -> bool {
        let decide = || self.decide(path, is_directory, Side::Receiver);
        !path.is_empty() && decide().is_some_and(|(_, rule)| !rule.include)
    }

    /// Return the position of the rule that decides on `path`, and the path that it matched: `path`
    /// or its topmost excluded ancestor.  `None` if no rule matches.
    pub fn why<'a>(&self, path: &'a [u8], is_directory: bool) -> Option<(usize, &'a [u8])> {
        let decide_at = |path: &'a [u8], is_directory| {
            let decision = self.decide(path, is_directory, Side::Sender);
            decision.map(|(place, rule)| (place, rule.include, path))
        };
        let excluded = above(path)
            .filter_map(|above| decide_at(above, true))
            .find(|(_, include, _)| !include);
        let own = || {
            (!path.is_empty())
                .then(|| decide_at(path, is_directory))
                .flatten()
        };
        excluded.or_else(own).map(|(place, _, path)| (place, path))
    }

    /// Return true if the filter decides alike below two directories; false if in doubt.
    pub fn is_alike_below(&self, one: &[u8], other: &[u8]) -> bool {
        let mut senders = self.rules.iter().filter(|rule| rule.is_of(Side::Sender));
        one == other || senders.all(|rule| rule.pattern.is_blind_below([one, other]))
    }

    /// Return the first rule of a side that matches `path`, with its position; `None` without one.
    fn decide(&self, path: &[u8], is_directory: bool, side: Side) -> Option<(usize, &Rule)> {
        let mut rules = self.rules.iter().enumerate();
        rules.find(|(_, rule)| rule.applies(side, path, is_directory))
    }
}

/// Return the directories above a path, topmost first, without the module's own.
fn above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    slashes.filter_map(|(at, _)| path.get(..at))
}

/// A filter with memory for paths in tree order, or nearly so: it keeps the decisions on the
/// directories above the last path.
#[derive(Debug)]
pub struct Selector {
    /// The rules.
    pub filter: Arc<Filter>,
    path: Vec<u8>,
    /// The ends in `path` of each directory, and whether it is mirrored.
    known: Vec<(usize, bool)>,
}

impl Selector {
    /// Begin with an empty memory.
    pub fn new(filter: Arc<Filter>) -> Self {
        Self {
            filter,
            path: Vec::new(),
            known: Vec::new(),
        }
    }

    /// Return true if `path` and all directories above it are mirrored.
    pub fn reaches(&mut self, path: &[u8], is_directory: bool) -> bool {
        if self.filter.is_empty() || path.is_empty() {
            return true;
        }
        if is_directory {
            return self.reaches_directory(path);
        }
        self.filter.includes(path, false) && self.reaches(huai_format::path::parent(path), true)
    }

    /// Return `entry` of a mirrored directory if it is mirrored itself, else `None`; a hardlink
    /// whose leader is left out becomes a separate file.  A directory is always returned.
    pub fn admit<'a>(&mut self, directory: &RelPath, mut entry: Entry<'a>) -> Option<Entry<'a>> {
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

    /// Return true if a directory and those above it are mirrored, and keep these decisions.
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
