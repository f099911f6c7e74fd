//! How fast, and until when, content may be read.

use std::sync::Arc;
use std::time::Duration;

use huai_sys::pace;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Bytes a second, on average since it was made, and a time that ends it.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Pace(pub(crate) Arc<pace::Pace>);

#[pymethods]
impl Pace {
    #[new]
    fn new(rate: u64, seconds: Option<f64>) -> PyResult<Self> {
        let most = seconds.map(Duration::try_from_secs_f64).transpose();
        let most = most.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self(Arc::new(pace::Pace::new(rate, most))))
    }

    fn is_over(&self) -> bool {
        self.0.is_over()
    }
}
