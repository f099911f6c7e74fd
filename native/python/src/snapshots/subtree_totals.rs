//! Counts what is below directories of snapshots.

use std::time::{Duration, Instant};

use huai_format::path::RelPath;
use huai_format::walks;
use pyo3::prelude::*;

use super::snapshot::Lookup;
use crate::sys::errors::refuse;
use crate::sys::guarded::Guarded;

/// The sums of directories.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct SubtreeTotals(Guarded<walks::SubtreeTotals>);

#[pymethods]
impl SubtreeTotals {
    #[new]
    fn new(most: usize) -> Self {
        Self(Guarded::new(walks::SubtreeTotals::new(most)))
    }

    /// Return the numbers of files, symlinks and bytes below each directory; `None` where more than
    /// the seconds were needed.
    fn count(
        &self,
        py: Python<'_>,
        lookup: &Lookup,
        paths: Vec<Vec<u8>>,
        seconds: f64,
    ) -> PyResult<Vec<Option<(u64, u64, u64)>>> {
        let limit = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let begun = Instant::now();
        let counted = py.detach(|| {
            let (mut lookup, mut sums) = (lookup.lock(), self.0.lock());
            let paths = paths.into_iter().map(RelPath::trusted);
            let mut count = |path| sums.count(&mut lookup, &path, &|| begun.elapsed() >= limit);
            paths.map(&mut count).collect::<Result<Vec<_>, _>>()
        });
        let counted = counted.map_err(refuse)?.into_iter();
        let numbers = counted.map(|sum| sum.map(|sum| (sum.files, sum.symlinks, sum.bytes)));
        Ok(numbers.collect())
    }
}
