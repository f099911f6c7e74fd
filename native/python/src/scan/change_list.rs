//! Reads lists of paths that changed.

use std::sync::MutexGuard;

use huai_export::change_list::{self, Refusal, Spelling, Touched};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::sys::guarded::Guarded;

/// The paths that change lists name in one module.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct ChangeList {
    /// None after `close`.
    reading: Guarded<Option<change_list::ChangeList>>,
    /// Each path once, after `close`.
    touched: Guarded<Vec<Touched>>,
}

#[pymethods]
impl ChangeList {
    #[new]
    fn new(roots: Vec<Vec<u8>>) -> Self {
        Self {
            reading: Guarded::new(Some(change_list::ChangeList::new(&roots))),
            touched: Guarded::default(),
        }
    }

    fn begin_source(&self, spelling: &str) -> PyResult<()> {
        let spelling = Spelling::parse(spelling)
            .ok_or_else(|| PyValueError::new_err("not a spelling of change lists"))?;
        self.with(|reading| reading.begin_source(spelling))
    }

    /// Parse further bytes of the source begun by `begin_source`; an exception after `close`.
    fn feed(&self, py: Python<'_>, data: &[u8]) -> PyResult<()> {
        py.detach(|| self.with(|reading| reading.feed(data)))
    }

    fn end_source(&self) -> PyResult<()> {
        self.with(change_list::ChangeList::end_source)
    }

    /// Return the number of refused lines; the start of the first ones, each with true if its path is outside; true
    /// if a last line is incomplete.
    #[expect(
        clippy::type_complexity,
        reason = "three answers, of which one is a list"
    )]
    fn remarks<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(u64, Vec<(Bound<'py, PyBytes>, bool)>, bool)> {
        self.with(|reading| {
            let (count, shown) = reading.refused();
            let line = |(line, refusal): &(Vec<u8>, Refusal)| {
                (PyBytes::new(py, line), *refusal == Refusal::Outside)
            };
            (count, shown.iter().map(line).collect(), reading.is_cut())
        })
    }

    /// Close the list to further sources; returns the number of paths.  An exception if it is
    /// closed.
    fn close(&self, py: Python<'_>) -> PyResult<usize> {
        py.detach(|| {
            let reading = self.reading.lock().take().ok_or_else(is_closed)?;
            let mut touched = self.touched.lock();
            *touched = reading.into_touched();
            Ok(touched.len())
        })
    }
}

impl ChangeList {
    /// Make a closed list of these paths.
    pub(crate) fn of(touched: Vec<Touched>) -> Self {
        Self {
            reading: Guarded::new(None),
            touched: Guarded::new(touched),
        }
    }

    /// Return the paths, each once; empty before `close`.
    pub(crate) fn touched(&self) -> MutexGuard<'_, Vec<Touched>> {
        self.touched.lock()
    }

    /// Call `work` with the open list; an exception after `close`.
    fn with<T>(&self, work: impl FnOnce(&mut change_list::ChangeList) -> T) -> PyResult<T> {
        let mut reading = self.reading.lock();
        Ok(work(reading.as_mut().ok_or_else(is_closed)?))
    }
}

fn is_closed() -> PyErr {
    PyRuntimeError::new_err("the list is closed")
}
