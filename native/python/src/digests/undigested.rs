//! Files that have no digest.

use huai_format::path::RelPath;
use huai_format::walks::{Undigested, UndigestedFile};
use huai_git::error::Result;
use pyo3::prelude::*;

use crate::packs::lent::LentSnapshot;
use crate::sys::wait::wait;

/// Files, bytes, the last file, lists.
type UndigestedFiles = (u64, u64, Option<(i64, Vec<u8>)>, Vec<Vec<u8>>);

/// Find the files of a snapshot without a digest.  Returns their number and bytes; then, of the `most` newest that
/// sort before `before`, mtime and path of the last, and their paths in lists of at most so many files and bytes.
#[pyfunction]
pub(crate) fn find_undigested(
    py: Python<'_>,
    lent: LentSnapshot,
    most: usize,
    before: Option<(i64, Vec<u8>)>,
    bounds: (usize, u64),
) -> PyResult<UndigestedFiles> {
    let before = before.map(|(mtime, path)| (mtime, RelPath::trusted(path)));
    let gathered = wait(py, move |_| {
        let mut walk = lent.walk();
        let mut gathered = Undigested::new(most, before);
        while let Some(listing) = walk.next(&lent.snapshot)? {
            gathered.gather(&listing)?;
        }
        Result::Ok(gathered)
    })?;
    let (files, size) = (gathered.files, gathered.bytes);
    let newest = gathered.newest();
    let last = newest.last();
    let last = last.map(|last| (last.mtime, last.path.as_bytes().to_vec()));
    Ok((files, size, last, in_lists(&newest, bounds)))
}

/// Split files into lists of at most so many files and bytes, but at least one file; a NUL ends
/// each path.
fn in_lists(newest: &[UndigestedFile], (files, size): (usize, u64)) -> Vec<Vec<u8>> {
    let mut lists: Vec<Vec<u8>> = Vec::new();
    let (mut count, mut held) = (files, 0_u64);
    for file in newest {
        if count == files || held.saturating_add(file.size) > size {
            lists.push(Vec::new());
            (count, held) = (0, 0);
        }
        if let Some(list) = lists.last_mut() {
            list.extend_from_slice(file.path.as_bytes());
            list.push(0);
        }
        count += 1;
        held = held.saturating_add(file.size);
    }
    lists
}
