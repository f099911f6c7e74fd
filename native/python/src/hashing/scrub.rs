//! A check that files have the content that their digests name.

use huai_format::path::RelPath;
use huai_format::snapshots::{EntryLimit, Snapshot};
use huai_format::walks;
use huai_format::walks::DigestedFile;
use huai_sys::error::is_shortage;
use huai_tree::hashing::scrub::{self, Expected, Verdict};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::packs::lent::{Reader, snapshot};
use crate::sys::errors::{lacking, raise, refuse};
use crate::sys::guarded::Guarded;
use crate::sys::pace::Pace;
use crate::sys::wait::wait;

/// Path, size, mtime, digest.
type Row = (Vec<u8>, u64, i64, [u8; 32]);
/// A file that is not as it should be: its row; the digest that it has, its inode and its ctime, or
/// an errno, 0 if it changed.
type Finding<'py> = (
    Bound<'py, PyBytes>,
    u64,
    i64,
    Bound<'py, PyBytes>,
    Option<(Bound<'py, PyBytes>, u64, i64)>,
    i32,
);

/// Some files with digests.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct DigestedBatch(Vec<DigestedFile>);

#[pymethods]
impl DigestedBatch {
    #[new]
    fn new(rows: Vec<Row>) -> Self {
        let file = |(path, size, mtime, digest)| DigestedFile {
            path: RelPath::trusted(path),
            size,
            mtime,
            digest,
        };
        Self(rows.into_iter().map(file).collect())
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// The total size of the first `count` files, in bytes.
    fn size(&self, count: usize) -> u64 {
        let sizes = self.0.iter().take(count).map(|file| file.size);
        sizes.fold(0, u64::saturating_add)
    }

    /// The path and the size of one of them.
    fn file<'py>(&self, py: Python<'py>, number: usize) -> PyResult<(Bound<'py, PyBytes>, u64)> {
        let file = self.0.get(number);
        let file = file.ok_or_else(|| PyValueError::new_err("the number is out of range"))?;
        Ok((PyBytes::new(py, file.path.as_bytes()), file.size))
    }
}

/// All files with digests, in tree order.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Digested(Snapshot<Reader>, Guarded<walks::Digested>);

#[pymethods]
impl Digested {
    #[new]
    fn new(lent: (Py<PyAny>, Bound<'_, PyBytes>, u64), after: Option<Vec<u8>>) -> PyResult<Self> {
        let (reader, tree, limit) = lent;
        let snapshot = snapshot(reader, tree.as_bytes())?;
        let after = after.map(RelPath::trusted);
        let files = walks::Digested::new(&snapshot, EntryLimit::new(limit), after);
        Ok(Self(snapshot, Guarded::new(files)))
    }

    /// The next ones; at the end there are none.
    fn batch(&self, py: Python<'_>, files: usize, size: u64) -> PyResult<DigestedBatch> {
        let batch = wait(py, |_| {
            let mut open = self.1.try_lock()?;
            open.batch(&self.0, files, size).map_err(refuse)
        })??;
        Ok(DigestedBatch(batch))
    }
}

/// A reader of files below one root.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Scrub(scrub::Scrub);

#[pymethods]
impl Scrub {
    #[new]
    fn new(py: Python<'_>, root: &[u8]) -> PyResult<Self> {
        let opened = wait(py, |_| scrub::Scrub::open(root))?;
        opened.map(Self).map_err(|error| raise(py, &error))
    }

    /// The inode and ctime of the entry at a path, if there is one.
    fn identity(&self, py: Python<'_>, path: &[u8]) -> PyResult<Option<(u64, i64)>> {
        let identity = py.detach(|| self.0.identity(path));
        identity.map_err(|error| raise(py, &error))
    }

    /// Return the number of files read before the time was over, and the changed or damaged ones.
    fn read<'py>(
        &self,
        py: Python<'py>,
        batch: &DigestedBatch,
        pace: &Pace,
    ) -> PyResult<(usize, Vec<Finding<'py>>)> {
        let files = &batch.0;
        let verdicts = wait(py, |stop| {
            stop.hold_to(&pace.0);
            let expected = files.iter().map(|file| Expected {
                path: file.path.as_bytes(),
                size: file.size,
                mtime: file.mtime,
                digest: file.digest,
            });
            self.0.read(expected, stop)
        })?;
        for verdict in &verdicts {
            match verdict {
                Verdict::Failed(errno) if is_shortage(*errno) => return Err(lacking(py, *errno)),
                _ => {}
            }
        }
        let pairs = files.iter().zip(&verdicts);
        let findings = pairs.filter_map(|(file, verdict)| finding(py, file, *verdict));
        Ok((verdicts.len(), findings.collect()))
    }
}

fn finding<'py>(py: Python<'py>, file: &DigestedFile, verdict: Verdict) -> Option<Finding<'py>> {
    let (found, errno) = match verdict {
        Verdict::Same => return None,
        Verdict::Changed => (None, 0),
        Verdict::Damaged(digest, (inode, ctime)) => {
            (Some((PyBytes::new(py, &digest), inode, ctime)), 0)
        }
        Verdict::Failed(errno) => (None, errno.raw_os_error()),
    };
    let path = PyBytes::new(py, file.path.as_bytes());
    let digest = PyBytes::new(py, &file.digest);
    Some((path, file.size, file.mtime, digest, found, errno))
}
