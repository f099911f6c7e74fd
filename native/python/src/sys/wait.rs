//! The one door to long calls: detached from Python, and a signal ends them.
//!
//! Python handles signals on its main thread only, between two of its instructions.  So the work
//! runs on a thread of its own, and the caller's thread looks for signals meanwhile.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, Builder};
use std::time::Duration;

use huai_tree::sys::stop::Stop;
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
    let ask = |py: Python<'_>, _: &Stop| ask.map_or(Ok(()), |ask| ask.call0(py).map(drop));
    wait_asked(py, ask, work)
}

/// The same; `hear` is told how far the work is, as often, and ends it by saying false: then what
/// was done until then is what `work` returns.
pub(crate) fn wait_telling<T: Send>(
    py: Python<'_>,
    hear: &Py<PyAny>,
    work: impl FnOnce(&AtomicU64, &Stop) -> T + Send,
) -> PyResult<T> {
    let done = AtomicU64::new(0);
    let tell = |py: Python<'_>, stop: &Stop| {
        let goes_on = hear.call1(py, (done.load(Ordering::Relaxed),))?;
        if !goes_on.is_truthy(py)? {
            stop.set();
        }
        Ok(())
    };
    wait_asked(py, tell, |stop| work(&done, stop))
}

fn wait_asked<T: Send>(
    py: Python<'_>,
    ask: impl Fn(Python<'_>, &Stop) -> PyResult<()> + Sync,
    work: impl FnOnce(&Stop) -> T + Send,
) -> PyResult<T> {
    let stop = Stop::default();
    let ask = &ask;
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
                raised = look(ask, stop).inspect_err(|_| stop.set());
            }
            let outcome = worker.join().unwrap_or_else(|panic| resume_unwind(panic));
            raised.map(|()| outcome)
        })
    })
}

fn look(ask: impl Fn(Python<'_>, &Stop) -> PyResult<()>, stop: &Stop) -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        ask(py, stop)
    })
}
