//! The names by which rsync requests files.
//!
//! A sender examines each name that it gets, and reads a directory much faster than it examines the
//! names in it.  So a directory is requested as a whole if all its files are, by the snapshot.

use huai_format::path::{RelPath, parent};
use huai_format::snapshots::{Lookup, ObjectReader};
use huai_git::error::Result;

/// The fewest files for which a directory is requested as a whole.
const FEWEST: usize = 2;

/// The names of one request.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RequestNames {
    /// The names, each ended by a NUL; that of a directory ends with a slash.
    pub names: Vec<u8>,
    /// The number of directories among them.
    pub directories: usize,
}

impl RequestNames {
    /// Name the files at `paths`, those of a directory one after the other; each name begins with
    /// `start`, also that of the root.  A directory of which all files are wanted is named instead
    /// of two or more files; never without a `lookup`.
    ///
    /// A directory with subdirectories is not named: they would arrive too, empty.
    pub fn of<R: ObjectReader>(
        paths: &[&[u8]],
        start: &[u8],
        mut lookup: Option<Lookup<R>>,
    ) -> Result<Self> {
        let mut request = Self::default();
        for group in paths.chunk_by(|one, other| parent(one) == parent(other)) {
            let directory = group.first().map(|path| parent(path)).unwrap_or_default();
            let is_whole = match &mut lookup {
                Some(lookup) if group.len() >= FEWEST => has_only(lookup, directory, group.len())?,
                _ => false,
            };
            if is_whole {
                let slash: &[u8] = if directory.is_empty() { b"" } else { b"/" };
                request.push(&[start, directory, slash]);
                request.directories = request.directories.saturating_add(1);
            } else {
                for path in group {
                    request.push(&[start, path]);
                }
            }
        }
        Ok(request)
    }

    fn push(&mut self, parts: &[&[u8]]) {
        for part in parts {
            self.names.extend_from_slice(part);
        }
        self.names.push(0);
    }
}

/// Return true if a directory has just so many files, and no subdirectory; symlinks do not count.
/// False if it is missing.
fn has_only<R: ObjectReader>(
    lookup: &mut Lookup<R>,
    directory: &[u8],
    files: usize,
) -> Result<bool> {
    let snapshot = lookup.snapshot();
    let mut subtree = lookup.subtree(&RelPath::trusted(directory.to_vec()))?;
    let Some(listing) = subtree.next_of(&snapshot, |_| true)? else {
        return Ok(false);
    };
    Ok(listing.files() == files && subtree.next_of(&snapshot, |_| true)?.is_none())
}
