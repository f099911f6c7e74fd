//! A quick test if any rule may match a path, wherever repositories are.
//!
//! Most paths match no rule seen from any directory: then the repositories around them are not
//! needed.

use std::collections::HashMap;

use huai_format::path::{basename, parent};

use super::patterns::StagePattern;

/// A set of patterns, seen from any directory.
#[derive(Debug, Default)]
pub(super) struct Anywhere {
    /// The patterns by their last name.
    named: HashMap<Vec<u8>, Vec<StagePattern>>,
    /// The patterns for whole directories.
    directories: Vec<StagePattern>,
    /// The patterns that end in another glob.
    globs: Vec<StagePattern>,
    /// The last directory, and true if a pattern of `directories` matches it.
    last: Option<(Vec<u8>, bool)>,
}

impl Anywhere {
    /// Add a pattern to those of its kind, unless it is there.
    pub(super) fn add(&mut self, pattern: &StagePattern) {
        let pattern = pattern.seen_from_anywhere();
        let patterns = if pattern.is_of_whole_directories() {
            &mut self.directories
        } else if let Some(name) = pattern.last_name() {
            self.named.entry(name.to_vec()).or_default()
        } else {
            &mut self.globs
        };
        // Many profiles have the same ones.
        if !patterns.contains(&pattern) {
            patterns.push(pattern);
        }
    }

    /// Return true if a pattern may match; `path` is not empty.
    pub(super) fn may_match(&mut self, path: &[u8], symlink: bool) -> bool {
        let name = basename(path);
        let any = |patterns: &[StagePattern]| {
            let mut patterns = patterns.iter();
            patterns.any(|pattern| pattern.matches(path, name, symlink))
        };
        let same_name = self.named.get(name);
        if same_name.is_some_and(|same_name| any(same_name)) || any(&self.globs) {
            return true;
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
