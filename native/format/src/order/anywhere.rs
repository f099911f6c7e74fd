//! Whether some rule may match a path, wherever repositories are.
//!
//! Most paths are matched by no rule at all, seen from no directory: then nothing has to be known
//! of the repositories around them.

use std::collections::HashMap;

use super::patterns::{Pattern, names};
use crate::path::{basename, parent};

/// Patterns, seen from any directory.
#[derive(Debug, Default)]
pub(super) struct Anywhere {
    /// By their last name.
    named: HashMap<Vec<u8>, Vec<Pattern>>,
    /// Those about all that is below a directory.
    below: Vec<Pattern>,
    /// Those that end in another glob.
    others: Vec<Pattern>,
    /// The last directory, and whether one of `below` is about it.
    last: Option<(Vec<u8>, bool)>,
}

impl Anywhere {
    pub(super) fn add(&mut self, pattern: &Pattern) {
        let pattern = pattern.seen_from_anywhere();
        if pattern.is_of_all_below() {
            self.below.push(pattern);
        } else if let Some(name) = pattern.last_name() {
            self.named.entry(name.to_vec()).or_default().push(pattern);
        } else {
            self.others.push(pattern);
        }
    }

    /// Whether one of them may match; `path` is not empty.
    pub(super) fn may_match(&mut self, path: &[u8], symlink: bool) -> bool {
        let components = names(path);
        let any = |patterns: &[Pattern]| {
            let mut patterns = patterns.iter();
            patterns.any(|pattern| pattern.matches(&components, symlink))
        };
        let named = self.named.get(basename(path));
        if named.is_some_and(|named| any(named)) || any(&self.others) {
            return true;
        }
        let folder = parent(path);
        match &self.last {
            Some((known, found)) if known == folder => *found,
            _ => {
                let found = any(&self.below);
                self.last = Some((folder.to_vec(), found));
                found
            }
        }
    }
}
