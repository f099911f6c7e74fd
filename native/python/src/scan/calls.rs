//! The functions that Python lends to a scan, and the numbers of reasons for Python.

use huai_plan::pattern::Pattern;
use huai_sys::error::Errno;
use huai_tree::scan::directory::Reason;
use huai_tree::walk::owners::OwnerKind;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::sys::guarded::Guarded;

/// Functions that look up the names of users, and of groups.
#[derive(FromPyObject)]
pub(crate) struct Owners(Py<PyAny>, Py<PyAny>);

impl Owners {
    /// Call Python for the name of an owner; `CANCELED` after an exception, which `calls` keeps if
    /// it is the first.
    pub(crate) fn name(&self, kind: OwnerKind, id: u32, calls: &Calls) -> Result<Vec<u8>, Errno> {
        let look_up = match kind {
            OwnerKind::User => &self.0,
            OwnerKind::Group => &self.1,
        };
        calls.call(|py| look_up.call1(py, (id,))?.extract(py))
    }
}

/// The first exception of a function that Python lends to a long call, which ends by it.
#[derive(Default)]
pub(crate) struct Calls(Guarded<Option<PyErr>>);

impl Calls {
    /// Call a lent function; `CANCELED` if it raised an exception, of which the first is kept.
    pub(crate) fn call<T>(
        &self,
        function: impl FnOnce(Python<'_>) -> PyResult<T>,
    ) -> Result<T, Errno> {
        Python::attach(function).map_err(|error| {
            self.0.lock().get_or_insert(error);
            Errno::CANCELED
        })
    }

    /// Call a lent function with bytes; `CANCELED` if it raised an exception, as of `call`.
    pub(crate) fn call_with(&self, function: &Py<PyAny>, bytes: &[u8]) -> Result<(), Errno> {
        self.call(|py| function.call1(py, (PyBytes::new(py, bytes),)).map(drop))
    }

    /// Return the first exception that was raised; `None` without one.
    pub(crate) fn raised(self) -> Option<PyErr> {
        self.0.into_inner()
    }
}

/// Parse the patterns of left out entries.
pub(crate) fn parse_patterns(patterns: Vec<Vec<u8>>) -> Vec<Pattern> {
    patterns
        .into_iter()
        .map(|text| Pattern::new(&text))
        .collect()
}

/// Return the errno of a reason, or the negative number that `_native.pyi` lists for it.
pub(crate) fn number(reason: Reason) -> i32 {
    match reason {
        Reason::Errno(errno) => errno.raw_os_error(),
        Reason::KeepsChanging => -1,
        Reason::OutOfRange => -2,
        Reason::Time => -3,
        Reason::Reserved => -4,
        Reason::Temporary => -5,
        Reason::Changed => -6,
        Reason::Damaged => -7,
        Reason::NotEntered => -8,
        Reason::MountedOver => -9,
        Reason::NotMounted => -10,
        Reason::NoResult => -11,
        Reason::OtherView => -12,
    }
}
