//! Formats snapshots as text for other programs: the file lists of Fedora's mirrors, and `ls -lR`.
//!
//! A list leaves out the files that an export writes into the tree itself, and the times of their
//! directories: otherwise writing the list would change it.

pub mod fedora;
pub mod ls;

mod calendar;

use std::collections::HashSet;

use huai_format::path::RelPath;

/// The files that an export writes into the tree.
#[derive(Debug, Default)]
pub struct Exported {
    files: HashSet<Vec<u8>>,
    directories: HashSet<Vec<u8>>,
    /// The time stated for directories of these files, in seconds since the epoch.
    pub time: i64,
}

impl Exported {
    /// Make the set of these files; `time`, in seconds since the epoch, is stated for their
    /// directories.
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

    /// Return true if `name` in `directory` is one of these files.
    fn names(&self, directory: &RelPath, name: &[u8]) -> bool {
        self.holds(directory.as_bytes()) && self.files.contains(directory.join(name).as_bytes())
    }

    /// Return true if one of these files is in or below a directory.
    fn holds(&self, directory: &[u8]) -> bool {
        !self.files.is_empty() && (directory.is_empty() || self.directories.contains(directory))
    }
}

/// Return whole seconds as in `stat`: rounded down, before 1970 as well.
fn seconds(nanoseconds: i64) -> i64 {
    nanoseconds.div_euclid(1_000_000_000)
}
