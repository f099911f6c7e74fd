//! Reading a whole tree.

use huai_format::change_list::Touched;
use huai_format::pattern::Pattern;
use huai_tree::scan::directory::{Directory, Frame, Options};
use huai_tree::scan::linked::find_linked;
use huai_tree::scan::run::Watch;
use huai_tree::scan::whole_tree;
use huai_tree::sys::error::{Errno, Result};
use huai_tree::sys::stop::Stop;
use huai_tree::walk::owners::{Kind, LookUp};
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::change_list::ChangeList;
use super::frame::tuple;
use super::run::Run;
use super::touched::Looked;
use crate::sys::errors::raise;
use crate::sys::guarded::Guarded;
use crate::sys::wait::wait;

/// A tree on its way to Python: an iterator over batches of directories, in tree order.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Scan {
    frames: Guarded<whole_tree::Scan>,
    /// None: every directory comes by itself.
    watch: Guarded<Option<Watch>>,
    owners: Option<Owners>,
}

/// Who knows the names of owners.
struct Owners {
    user: Py<PyAny>,
    group: Py<PyAny>,
}

#[pymethods]
impl Scan {
    #[new]
    #[pyo3(signature = (root, patterns, *, threads, one_file_system, owners))]
    fn new(
        py: Python<'_>,
        root: &[u8],
        patterns: Vec<Vec<u8>>,
        threads: usize,
        one_file_system: bool,
        owners: Option<(Py<PyAny>, Py<PyAny>)>,
    ) -> PyResult<Self> {
        let options = Options {
            patterns: parsed(patterns),
            one_file_system,
            owners: owners.is_some(),
            threads,
        };
        let opened = wait(py, |_| whole_tree::Scan::open(root, options))?;
        Ok(Self {
            frames: Guarded::new(opened.map_err(|error| raise(py, &error))?),
            watch: Guarded::default(),
            owners: owners.map(|(user, group)| Owners { user, group }),
        })
    }

    fn watch(&self, paths: Vec<Vec<u8>>) {
        let device = self.frames.lock().device();
        *self.watch.lock() = Some(Watch::new(device, paths));
    }

    /// What stands at the paths of a list; `record`: the groups of hardlinks that are known.
    fn look(
        &self,
        py: Python<'_>,
        changes: &Bound<'_, ChangeList>,
        record: &[u8],
    ) -> PyResult<Looked> {
        let mut touched = changes.get().touched().clone();
        let looked = self.asking(py, |scan, look_up, stop| {
            let looked = scan.look(&touched, look_up, stop)?;
            let linked = find_linked(record, &looked.replaced(), stop)?;
            if linked.is_empty() {
                return Ok(looked);
            }
            touched.extend(linked.into_iter().map(|path| Touched {
                path,
                all_below: false,
                perhaps: true,
            }));
            scan.look(&touched, look_up, stop)
        })?;
        Looked::new(py, looked)
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
        let items: Vec<_> = match &mut *self.watch.lock() {
            None => {
                let tuples = frames
                    .into_iter()
                    .map(|frame| tuple(py, frame).map(Bound::into_any));
                tuples.collect::<PyResult<_>>()?
            }
            Some(watch) => runs(py, frames, watch)?,
        };
        PyList::new(py, items).map(Some)
    }
}

/// Directories about which nothing has to be decided together, all others one by one.
fn runs<'py>(
    py: Python<'py>,
    frames: Vec<Frame>,
    watch: &mut Watch,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let mut items = Vec::new();
    let mut run = Vec::new();
    let put = |run: &mut Vec<Directory>, items: &mut Vec<Bound<'py, PyAny>>| {
        if !run.is_empty() {
            let run = Run::new(std::mem::take(run));
            items.push(Bound::new(py, run)?.into_any());
        }
        PyResult::Ok(())
    };
    for frame in frames {
        match frame {
            Frame::Read(found) if watch.is_ordinary(&found) => run.push(found),
            other => {
                put(&mut run, &mut items)?;
                items.push(tuple(py, other)?.into_any());
            }
        }
    }
    put(&mut run, &mut items)?;
    Ok(items)
}

impl Scan {
    fn read(&self, py: Python<'_>) -> PyResult<Vec<Frame>> {
        self.asking(py, whole_tree::Scan::next)
    }

    /// Does work that may ask for names of owners.
    fn asking<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut whole_tree::Scan, &LookUp<'_>, &Stop) -> Result<T> + Send,
    ) -> PyResult<T> {
        let raised = Guarded::new(None);
        let look_up = |kind, id| {
            self.name(kind, id).map_err(|error| {
                raised.lock().get_or_insert(error);
                Errno::CANCELED
            })
        };
        let outcome = wait(py, |stop| work(&mut self.frames.lock(), &look_up, stop))?;
        match raised.into_inner() {
            Some(error) => Err(error),
            None => outcome.map_err(|error| raise(py, &error)),
        }
    }

    fn name(&self, kind: Kind, id: u32) -> PyResult<Vec<u8>> {
        let Some(owners) = &self.owners else {
            return Ok(Vec::new());
        };
        let look_up = match kind {
            Kind::User => &owners.user,
            Kind::Group => &owners.group,
        };
        Python::attach(|py| look_up.call1(py, (id,))?.extract(py))
    }
}

pub(crate) fn parsed(patterns: Vec<Vec<u8>>) -> Vec<Pattern> {
    patterns
        .into_iter()
        .map(|text| Pattern::new(&text))
        .collect()
}
