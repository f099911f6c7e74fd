//! A snapshot as the text that other programs read: the file lists of Fedora's mirrors, `ls -lR`.
//!
//! A list is about everything but the files that an export writes into the tree itself, and the
//! times of the directories that hold these: so it does not change because it was written.

pub mod fedora;
pub mod ls;

mod calendar;

use std::collections::HashSet;

use crate::path::RelPath;

/// What an export writes into the tree.
#[derive(Debug, Default)]
pub struct Exported {
    files: HashSet<Vec<u8>>,
    directories: HashSet<Vec<u8>>,
    /// Seconds since the epoch: what lists say of the directories that hold these files.
    pub time: i64,
}

impl Exported {
    /// These files.
    pub fn new(files: Vec<RelPath>, time: i64) -> Self {
        let above = files.iter().flat_map(RelPath::ancestors);
        Self {
            directories: above.map(<[u8]>::to_vec).collect(),
            files: files
                .into_iter()
                .map(|path| path.as_bytes().to_vec())
                .collect(),
            time,
        }
    }

    /// Whether `name` in `directory` is one of these files.
    fn names(&self, directory: &RelPath, name: &[u8]) -> bool {
        self.holds(directory.as_bytes()) && self.files.contains(directory.join(name).as_bytes())
    }

    /// Whether one of these files is in or below a directory.
    fn holds(&self, directory: &[u8]) -> bool {
        !self.files.is_empty() && (directory.is_empty() || self.directories.contains(directory))
    }
}

/// Whole seconds, as `stat` has them: the fraction counts upwards from there, before 1970 as well.
fn seconds(nanoseconds: i64) -> i64 {
    nanoseconds.div_euclid(1_000_000_000)
}

/// Whether `path` is `directory`, or below it.
fn is_within(path: &[u8], directory: &[u8]) -> bool {
    path.strip_prefix(directory)
        .is_some_and(|rest| directory.is_empty() || rest.is_empty() || rest.starts_with(b"/"))
}
