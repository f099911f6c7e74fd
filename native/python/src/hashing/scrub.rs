//! A check that files have the content that their digests name.

use huai_format::path::RelPath;
use huai_format::snapshots::{EntryLimit, Snapshot};
use huai_format::walks::{self, DigestedFile};
use huai_sys::error::is_shortage;
use huai_tree::hashing::scrub::{self, Expected, Verdict};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::packs::lent::{LentSnapshot, Reader};
use crate::sys::errors::{lacking, raise, refuse};
use crate::sys::guarded::Guarded;
use crate::sys::pace::Pace;
use crate::sys::wait::wait;

/// Path, size, mtime, digest.
type Row<'py> = (Bound<'py, PyBytes>, u64, i64, Bound<'py, PyBytes>);
/// The digest that a file has, its inode and its ctime; or an errno, 0 if it changed.
type Finding<'py> = (Option<(Bound<'py, PyBytes>, u64, i64)>, i32);

/// All files with digests, in tree order.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Digested(Snapshot<Reader>, Guarded<walks::Digested>);

#[pymethods]
impl Digested {
    #[new]
    fn new(lent: LentSnapshot, after: Option<Vec<u8>>) -> Self {
        let LentSnapshot { snapshot, limit } = lent;
        let after = after.map(RelPath::trusted);
        let files = walks::Digested::new(&snapshot, EntryLimit::new(limit), after);
        Self(snapshot, Guarded::new(files))
    }

    /// Return at most `files` further files, no hardlinks, until they have `size` bytes; empty at the end.
    fn batch<'py>(&self, py: Python<'py>, files: usize, size: u64) -> PyResult<Vec<Row<'py>>> {
        let batch = wait(py, |_| {
            let mut open = self.1.try_lock()?;
            open.batch(&self.0, files, size).map_err(refuse)
        })?;
        let row = |file: &DigestedFile| {
            let path = PyBytes::new(py, file.path.as_bytes());
            (path, file.size, file.mtime, PyBytes::new(py, &file.digest))
        };
        Ok(batch.iter().map(row).collect())
    }
}

/// A reader of files below one root.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Scrub(scrub::Scrub);

#[pymethods]
impl Scrub {
    #[new]
    fn new(py: Python<'_>, root: &[u8]) -> PyResult<Self> {
        wait(py, |_| scrub::Scrub::open(root)).map(Self)
    }

    /// Return inode and ctime of the entry at `path`; `None` if it is missing.
    fn identity(&self, py: Python<'_>, path: &[u8]) -> PyResult<Option<(u64, i64)>> {
        let identity = py.detach(|| self.0.identity(path));
        identity.map_err(|error| raise(py, &error))
    }

    /// Return the number of files that were read before `pace` was over, and place and finding of those that are not
    /// as expected: changed, damaged or unreadable.  A shortage of memory or file handles is an exception.
    fn read<'py>(
        &self,
        py: Python<'py>,
        files: Vec<(PyBackedBytes, u64, i64, [u8; 32])>,
        pace: &Pace,
    ) -> PyResult<(usize, Vec<(usize, Finding<'py>)>)> {
        let verdicts = wait(py, |stop| {
            stop.hold_to(&pace.0);
            let expected = files.iter().map(|(path, size, mtime, digest)| Expected {
                path,
                size: *size,
                mtime: *mtime,
                digest: *digest,
            });
            PyResult::Ok(self.0.read(expected, stop))
        })?;
        for verdict in &verdicts {
            match verdict {
                Verdict::Failed(errno) if is_shortage(*errno) => return Err(lacking(py, *errno)),
                _ => {}
            }
        }
        let verdicts = verdicts.into_iter().enumerate();
        let findings = verdicts
            .clone()
            .filter_map(|(number, verdict)| finding(py, verdict).map(|finding| (number, finding)));
        Ok((verdicts.len(), findings.collect()))
    }
}

/// Convert a verdict: digest, inode and ctime of damaged content, `None` if it changed or failed, and an errno or 0;
/// `None` if the content is the expected one.
fn finding(py: Python<'_>, verdict: Verdict) -> Option<Finding<'_>> {
    match verdict {
        Verdict::Same => None,
        Verdict::Changed => Some((None, 0)),
        Verdict::Damaged(digest, (inode, ctime)) => {
            Some((Some((PyBytes::new(py, &digest), inode, ctime)), 0))
        }
        Verdict::Failed(errno) => Some((None, errno.raw_os_error())),
    }
}
