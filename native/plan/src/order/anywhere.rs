//! A quick test if any rule may match a path, wherever repositories are.
//!
//! Most paths match no rule seen from any directory: then the repositories around them are not
//! needed.  Most names differ from all patterns in the first and the last byte.

use std::collections::BTreeMap;

use huai_format::path::{basename, parent};

use super::patterns::StagePattern;

/// A set of patterns, seen from any directory.
#[derive(Debug, Default)]
pub(super) struct Anywhere {
    /// The patterns whose last name begins with a byte, by this byte.
    by_first: ByByte,
    /// The others whose last name ends with a byte, by this byte.
    by_last: ByByte,
    /// The patterns for whole directories.
    directories: Vec<StagePattern>,
    /// The other patterns.
    others: Vec<StagePattern>,
    /// The last directory, and true if a pattern of `directories` matches it.
    last: Option<(Vec<u8>, bool)>,
}

/// Patterns by a byte of their last name.
type ByByte = BTreeMap<u8, Vec<StagePattern>>;

impl Anywhere {
    /// Add a pattern to those of its kind, unless it is there.
    pub(super) fn add(&mut self, pattern: &StagePattern) {
        let pattern = pattern.seen_from_anywhere();
        let patterns = if pattern.is_of_whole_directories() {
            &mut self.directories
        } else {
            match pattern.name_ends() {
                (Some(first), _) => self.by_first.entry(first).or_default(),
                (None, Some(last)) => self.by_last.entry(last).or_default(),
                (None, None) => &mut self.others,
            }
        };
        // Many profiles have the same ones.
        if !patterns.contains(&pattern) {
            patterns.push(pattern);
        }
    }

    /// Return true if a pattern matches, seen from any directory; `path` is not empty.
    pub(super) fn may_match(&mut self, path: &[u8], symlink: bool) -> bool {
        let name = basename(path);
        let any = |patterns: &[StagePattern]| {
            let mut patterns = patterns.iter();
            patterns.any(|pattern| pattern.matches(path, name, symlink))
        };
        let any_at = |patterns: &ByByte, byte: Option<&u8>| {
            let patterns = byte.and_then(|byte| patterns.get(byte));
            patterns.is_some_and(|patterns| any(patterns))
        };
        if any_at(&self.by_first, name.first())
            || any_at(&self.by_last, name.last())
            || any(&self.others)
        {
            return true;
        }
        if self.directories.is_empty() {
            return false;
        }
        let folder = parent(path);
        match &self.last {
            Some((known, is_match)) if known == folder => *is_match,
            _ => {
                let is_match = any(&self.directories);
                self.last = Some((folder.to_vec(), is_match));
                is_match
            }
        }
    }
}
