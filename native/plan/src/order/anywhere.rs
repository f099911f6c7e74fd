//! A quick test if any rule may match a path, wherever repositories are.
//!
//! Most paths match no rule seen from any directory: then the repositories around them are not
//! needed.

use std::collections::HashMap;

use huai_format::path::{basename, parent};

use super::patterns::{StagePattern, names};

/// A set of patterns, seen from any directory.
#[derive(Debug, Default)]
pub(super) struct Anywhere {
    /// The patterns by their last name.
    named: HashMap<Vec<u8>, Vec<StagePattern>>,
    /// The patterns for everything below a directory.
    below: Vec<StagePattern>,
    /// The patterns that end in another glob.
    globs: Vec<StagePattern>,
    /// The last directory, and true if a pattern of `below` matches it.
    last: Option<(Vec<u8>, bool)>,
}

impl Anywhere {
    pub(super) fn add(&mut self, pattern: &StagePattern) {
        let pattern = pattern.seen_from_anywhere();
        if pattern.is_of_all_below() {
            self.below.push(pattern);
        } else if let Some(name) = pattern.last_name() {
            self.named.entry(name.to_vec()).or_default().push(pattern);
        } else {
            self.globs.push(pattern);
        }
    }

    /// Return true if a pattern may match; `path` is not empty.
    pub(super) fn may_match(&mut self, path: &[u8], symlink: bool) -> bool {
        let components = names(path);
        let any = |patterns: &[StagePattern]| {
            let mut patterns = patterns.iter();
            patterns.any(|pattern| pattern.matches(&components, symlink))
        };
        let same_name = self.named.get(basename(path));
        if same_name.is_some_and(|same_name| any(same_name)) || any(&self.globs) {
            return true;
        }
        let folder = parent(path);
        match &self.last {
            Some((known, is_match)) if known == folder => *is_match,
            _ => {
                let is_match = any(&self.below);
                self.last = Some((folder.to_vec(), is_match));
                is_match
            }
        }
    }
}
