//! The one door to long calls: detached from Python, and a signal ends them.
//!
//! Python handles signals on its main thread only, between two of its instructions.  So the work
//! runs on a separate thread, and the caller's thread looks for signals meanwhile.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, Builder};
use std::time::Duration;

use huai_sys::stop::Stop;
use pyo3::prelude::*;

use super::errors::Raise;

/// How often to look for signals.
const TICK: Duration = Duration::from_millis(100);

/// Return the result of `work`, which runs on another thread; its failure is raised.  If a signal's
/// handler raises an exception, `work` is told to stop, and that exception is raised at its end.
pub(crate) fn wait<T: Send, E: Raise + Send>(
    py: Python<'_>,
    work: impl FnOnce(&Stop) -> Result<T, E> + Send,
) -> PyResult<T> {
    wait_checking(py, None, work)
}

/// Return the result of `work` as `wait` does; `check` is called ten times a second, and its
/// exception ends the work as well.
pub(crate) fn wait_checking<T: Send, E: Raise + Send>(
    py: Python<'_>,
    check: Option<&Py<PyAny>>,
    work: impl FnOnce(&Stop) -> Result<T, E> + Send,
) -> PyResult<T> {
    let check = |py: Python<'_>, _: &Stop| check.map_or(Ok(()), |check| check.call0(py).map(drop));
    wait_polling(py, check, work)
}

/// Return the result of `work` as `wait` does; `report` is called ten times a second with the
/// progress of the work.  If it returns false, `work` is told to stop, and its result returned.
pub(crate) fn wait_reporting<T: Send, E: Raise + Send>(
    py: Python<'_>,
    report: &Py<PyAny>,
    work: impl FnOnce(&AtomicU64, &Stop) -> Result<T, E> + Send,
) -> PyResult<T> {
    let done = AtomicU64::new(0);
    let report_progress = |py: Python<'_>, stop: &Stop| {
        let continues = report.call1(py, (done.load(Ordering::Relaxed),))?;
        if !continues.is_truthy(py)? {
            stop.set();
        }
        Ok(())
    };
    wait_polling(py, report_progress, |stop| work(&done, stop))
}

/// Return the result of `work`, on a separate thread; an exception of a signal's handler or of
/// `check` stops it.  An exception, too, if no thread can be created.
fn wait_polling<T: Send, E: Raise + Send>(
    py: Python<'_>,
    check: impl Fn(Python<'_>, &Stop) -> PyResult<()> + Sync,
    work: impl FnOnce(&Stop) -> Result<T, E> + Send,
) -> PyResult<T> {
    let stop = Stop::default();
    let check = &check;
    let outcome = py.detach(|| {
        thread::scope(|scope| {
            let (working, worker_ended) = mpsc::channel::<()>();
            let stop = &stop;
            let worker = Builder::new().spawn_scoped(scope, move || {
                let _until_the_end = working;
                work(stop)
            })?;
            let mut raised = Ok(());
            while raised.is_ok()
                && worker_ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout)
            {
                raised = poll(check, stop).inspect_err(|_| stop.set());
            }
            let outcome = worker.join().unwrap_or_else(|panic| resume_unwind(panic));
            raised.map(|()| outcome)
        })
    });
    outcome?.map_err(|failure| failure.raise(py))
}

/// Handle signals, and call `check`; returns the first exception.
fn poll(check: impl Fn(Python<'_>, &Stop) -> PyResult<()>, stop: &Stop) -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        check(py, stop)
    })
}
