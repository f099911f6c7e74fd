//! Staging the files of a bundle.

use huai_tree::stage::bundle::{self, BundleArrival};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::verify::{Finish, build_requests};
use crate::candidates::table_rows::TableRows;
use crate::sys::errors::{raise, refuse};
use crate::sys::guarded::Guarded;

/// Writes the files of a bundle while it arrives.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct BundleWriter(Guarded<bundle::BundleWriter>);

#[pymethods]
impl BundleWriter {
    #[new]
    #[pyo3(signature = (files, folder, finish))]
    fn new(
        py: Python<'_>,
        files: TableRows,
        folder: u32,
        finish: Option<Finish>,
    ) -> PyResult<Self> {
        let files = build_requests(py, &files, finish)?;
        let writer = bundle::BundleWriter::new(files, folder);
        Ok(Self(Guarded::new(
            writer.map_err(|error| raise(py, &error))?,
        )))
    }

    /// Begin another response, with the files that have no verdict.
    fn begin(&self) -> PyResult<()> {
        self.0.try_lock()?.begin();
        Ok(())
    }

    /// Stage the files that are complete in the next bytes; returns the number of verdicts so far.
    fn write(&self, py: Python<'_>, data: &[u8]) -> PyResult<usize> {
        let writer = &mut *self.0.try_lock()?;
        // As few as arrive at once: too short for the one door to long calls.
        py.detach(|| writer.write(data)).map_err(refuse)?;
        Ok(writer.arrivals().len())
    }

    /// Return the number of the verdict on each file so far, in the order of the request.
    fn verdicts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let writer = self.0.try_lock()?;
        let verdicts: Vec<u8> = writer.arrivals().iter().copied().map(verdict).collect();
        Ok(PyBytes::new(py, &verdicts))
    }
}

/// Return the number of a verdict, as `_native.pyi` lists them.
fn verdict(arrival: BundleArrival) -> u8 {
    match arrival {
        BundleArrival::Arrived => 0,
        BundleArrival::Missing => 1,
        BundleArrival::Mismatch => 2,
        BundleArrival::Denied => 3,
        BundleArrival::Unreached => 4,
        BundleArrival::Finished => 5,
        BundleArrival::Wrong => 6,
    }
}
