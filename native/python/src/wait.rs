//! The one door to long calls: detached from Python, and a signal ends them.
//!
//! Python handles signals on its main thread only, between two of its instructions.  So the work
//! runs on a thread of its own, and the caller's thread looks for signals meanwhile.

use std::panic::resume_unwind;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, Builder};
use std::time::Duration;

use huai_tree::stop::Stop;
use pyo3::prelude::*;

/// How often to look for signals.
const TICK: Duration = Duration::from_millis(100);

/// What `work` returns.  If a signal's handler raises an exception, the work is told to stop, and
/// that exception is handed on.
pub(crate) fn wait<T: Send>(py: Python<'_>, work: impl FnOnce(&Stop) -> T + Send) -> PyResult<T> {
    wait_asking(py, None, work)
}

/// The same; an exception of `ask`, which is called as often as signals are looked for, ends the
/// work as well.
pub(crate) fn wait_asking<T: Send>(
    py: Python<'_>,
    ask: Option<&Py<PyAny>>,
    work: impl FnOnce(&Stop) -> T + Send,
) -> PyResult<T> {
    let stop = Stop::default();
    py.detach(|| {
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
                raised = look(ask).inspect_err(|_| stop.set());
            }
            let outcome = worker.join().unwrap_or_else(|panic| resume_unwind(panic));
            raised.map(|()| outcome)
        })
    })
}

fn look(ask: Option<&Py<PyAny>>) -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        ask.map_or(Ok(()), |ask| ask.call0(py).map(drop))
    })
}
