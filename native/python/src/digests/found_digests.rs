//! Digests that were found out after their files were committed.

use huai_format::found_digests;
use huai_format::path::RelPath;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::scan::run::Run;
use crate::snapshots::entries::SHORT;
use crate::sys::errors::refuse;
use crate::sys::guarded::Guarded;
use crate::sys::wait::wait;

/// Files with their digests, by path.
#[pyclass(frozen, module = "huai_native._native")]
#[derive(Default)]
pub(crate) struct FoundDigests(Guarded<found_digests::FoundDigests>);

#[pymethods]
impl FoundDigests {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn __len__(&self) -> usize {
        self.0.lock().len()
    }

    fn gather(&self, py: Python<'_>, run: &Bound<'_, Run>) -> PyResult<()> {
        let run = run.get();
        let gathered = wait(py, |_| {
            let run = run.lock();
            let mut found = self.0.lock();
            for (directory, column) in run.directories.iter().zip(&run.columns) {
                let path = RelPath::trusted(directory.path.clone());
                found.gather(&path, &directory.leaves, column)?;
            }
            Ok(())
        })?;
        gathered.map_err(refuse)
    }

    /// None: the column stays as it is.
    fn fill<'py>(
        &self,
        py: Python<'py>,
        directory: &[u8],
        leaves: &[u8],
        digests: &[u8],
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let path = RelPath::trusted(directory.to_vec());
        let fill = || self.0.lock().fill(&path, leaves, digests);
        let column = if leaves.len() < SHORT {
            py.detach(fill)
        } else {
            wait(py, |_| fill())?
        };
        Ok(column
            .map_err(refuse)?
            .map(|column| PyBytes::new(py, &column)))
    }
}
