//! Reading a whole tree.

use std::collections::BTreeSet;

use huai_plan::pattern::Pattern;
use huai_sys::error::Errno;
use huai_tree::scan::directory::{Frame, ScanOptions};
use huai_tree::scan::hardlinks::HardlinkGroups;
use huai_tree::scan::whole_tree;
use huai_tree::walk::owners::OwnerKind;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use super::frame::tuple;
use crate::sys::errors::raise;
use crate::sys::guarded::Guarded;
use crate::sys::wait::wait;

/// A tree on its way to Python: an iterator over batches of directories, in tree order.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Scan {
    frames: Guarded<whole_tree::Scan>,
    /// None if no hardlink fields are added.
    links: Option<Guarded<HardlinkGroups>>,
    owners: Option<Owners>,
}

/// Functions that look up the names of users, and of groups.
#[derive(FromPyObject)]
pub(crate) struct Owners(Py<PyAny>, Py<PyAny>);

#[pymethods]
impl Scan {
    #[new]
    #[pyo3(signature = (root, scan, owners, *, links = false))]
    fn new(
        py: Python<'_>,
        root: &[u8],
        scan: (Vec<Vec<u8>>, usize, bool),
        owners: Option<Owners>,
        links: bool,
    ) -> PyResult<Self> {
        let (patterns, threads, one_file_system) = scan;
        let options = ScanOptions {
            patterns: parse_patterns(patterns),
            one_file_system,
            owners: owners.is_some(),
            threads,
        };
        let opened = wait(py, |_| whole_tree::Scan::open(root, options))?;
        Ok(Self {
            frames: Guarded::new(opened.map_err(|error| raise(py, &error))?),
            links: links.then(Guarded::default),
            owners,
        })
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        let ready = self.frames.try_lock().map(|mut scan| scan.ready());
        let frames = match ready {
            Ok(Ok(frames)) if !frames.is_empty() => frames,
            Ok(Err(error)) => return Err(raise(py, &error)),
            _ => self.read(py)?,
        };
        if frames.is_empty() {
            return Ok(None);
        }
        let mut groups = self.links.as_ref().map(Guarded::lock);
        let tuples = frames.into_iter().map(|mut frame| {
            if let (Some(groups), Frame::Read(directory)) = (&mut groups, &mut frame) {
                groups.resolve(directory, &BTreeSet::new());
            }
            tuple(py, frame)
        });
        let items: Vec<_> = tuples.collect::<PyResult<_>>()?;
        PyList::new(py, items).map(Some)
    }
}

impl Scan {
    /// Return the next frames, which may have to be read; none at the end.
    fn read(&self, py: Python<'_>) -> PyResult<Vec<Frame>> {
        let calls = Calls::default();
        let look_up = |kind, id| match &self.owners {
            Some(owners) => owners.name(kind, id, &calls),
            None => Ok(Vec::new()),
        };
        let frames = wait(py, |stop| self.frames.lock().next(&look_up, stop))?;
        match calls.raised() {
            Some(error) => Err(error),
            None => frames.map_err(|error| raise(py, &error)),
        }
    }
}

impl Owners {
    /// Call Python for the name of an owner; `CANCELED` after an exception, which `calls` keeps.
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

    /// Call a lent function with bytes.
    pub(crate) fn call_with(&self, function: &Py<PyAny>, bytes: &[u8]) -> Result<(), Errno> {
        self.call(|py| function.call1(py, (PyBytes::new(py, bytes),)).map(drop))
    }

    pub(crate) fn raised(self) -> Option<PyErr> {
        self.0.into_inner()
    }
}

pub(crate) fn parse_patterns(patterns: Vec<Vec<u8>>) -> Vec<Pattern> {
    patterns
        .into_iter()
        .map(|text| Pattern::new(&text))
        .collect()
}
