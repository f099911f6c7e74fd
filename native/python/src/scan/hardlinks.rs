//! Hardlink groups of a scan.

use std::collections::HashSet;
use std::sync::MutexGuard;

use huai_tree::scan::hardlinks::{self, Seen, State};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use super::run::Run;
use crate::sys::guarded::Guarded;
use crate::sys::wait::wait;

/// Path, attributes, leaves, digests.
type Listing = (PyBackedBytes, PyBackedBytes, PyBackedBytes, PyBackedBytes);

/// Finds the groups of one scan.
#[pyclass(frozen, module = "huai_native._native")]
#[derive(Default)]
pub(crate) struct HardlinkGroups(Guarded<hardlinks::HardlinkGroups>);

impl HardlinkGroups {
    pub(crate) fn lock(&self) -> MutexGuard<'_, hardlinks::HardlinkGroups> {
        self.0.lock()
    }
}

#[pymethods]
impl HardlinkGroups {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// None: the leaves stay as they are.
    fn resolve<'py>(
        &self,
        py: Python<'py>,
        listing: Listing,
        records: &[u8],
        unsure: HashSet<Vec<u8>>,
    ) -> Option<Bound<'py, PyBytes>> {
        let leaves = py.detach(move || {
            let (path, _, leaves, digests) = &listing;
            let seen = Seen {
                path,
                leaves,
                records,
                digests,
            };
            self.lock().resolve(&seen, &unsure)
        });
        leaves.map(|leaves| PyBytes::new(py, &leaves))
    }

    fn resolve_run(&self, py: Python<'_>, run: &Bound<'_, Run>) -> PyResult<()> {
        let run = run.get();
        if !run.lock().has_hardlinks() {
            return Ok(());
        }
        wait(py, |_| self.lock().resolve_run(&mut run.lock()))
    }

    fn take_pairs<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.lock().take_pairs())
    }

    #[getter]
    fn is_complete(&self) -> bool {
        self.lock().is_complete()
    }

    fn leads(&self, path: &[u8], fields: &[u8], digest: &[u8]) -> bool {
        self.lock().leads(path, &State { fields, digest })
    }
}
