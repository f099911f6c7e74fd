//! Reads directories ahead, in tree order, with several threads.
//!
//! The threads live within one call; between two calls none exists.  They claim directories in tree
//! order too, so they work right ahead of the caller, and with one thread the order of system calls
//! is always the same.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder};

use huai_sys::call::Outcome;
use huai_sys::error::{Errno, Error, Result};

use super::queue::{self, Frame, Queue, Reading};

const THREADS_MAX: usize = 64;

/// A reader of directories for one thread.
pub(crate) trait Read {
    /// The result for a directory.
    type Frame: Frame + Send;

    /// Read the directory at `path`; an error ends the walk.
    fn read(&mut self, path: &[u8]) -> Outcome<Reading<Self::Frame>>;
}

/// A walk in progress.
#[derive(Debug)]
pub(crate) struct Ahead<F> {
    queue: Mutex<Queue<F>>,
}

/// The state that the threads of one call share.
struct Work<'a, F> {
    queue: &'a Mutex<Queue<F>>,
    changed: Condvar,
}

impl<F: Frame + Send> Ahead<F> {
    /// Begin at the directory `top`.
    pub(crate) fn new(top: &[u8]) -> Self {
        Self {
            queue: Mutex::new(Queue::new(top)),
        }
    }

    /// Return the next frames that are ready; an empty list does not mean the end.
    pub(crate) fn ready(&mut self) -> Vec<F> {
        let queue = self.queue.get_mut();
        queue.unwrap_or_else(PoisonError::into_inner).take_batch()
    }

    /// Return the next frames, read with so many threads, each with its own `reader`; an empty list
    /// is the end.  After an error every call returns it.
    pub(crate) fn next<R: Read<Frame = F>>(
        &mut self,
        threads: usize,
        reader: impl Fn() -> R + Sync,
    ) -> Result<Vec<F>> {
        loop {
            let batch = self.ready();
            if !batch.is_empty() || lock(&self.queue).is_finished() {
                return Ok(batch);
            }
            self.read_ahead(threads, &reader)?;
        }
    }

    /// Read directories until enough are ready, or none is left.
    fn read_ahead<R: Read<Frame = F>>(
        &self,
        threads: usize,
        reader: &(impl Fn() -> R + Sync),
    ) -> Result<()> {
        let work = Work {
            queue: &self.queue,
            changed: Condvar::new(),
        };
        let full = lock(&self.queue).is_full();
        let threads = if full { 1 } else { threads };
        thread::scope(|scope| {
            // This thread is one of them.
            for _ in 1..threads.min(THREADS_MAX) {
                // Fewer threads than requested make the scan slower, which is not an error.
                let started = Builder::new().spawn_scoped(scope, || work.run(reader()));
                if started.is_err() {
                    break;
                }
            }
            work.run(reader());
        });
        match lock(&self.queue).failure() {
            None => Ok(()),
            Some((errno, path)) => Err(Error::new("read", path, *errno)),
        }
    }
}

impl<F: Frame> Work<'_, F> {
    /// Read one claimed directory after the other, until none can be claimed any more.
    fn run(&self, mut reader: impl Read<Frame = F>) {
        let _on_panic = EndOnPanic(self);
        let mut queue = lock(self.queue);
        loop {
            if let Some(key) = queue.claim() {
                self.notify(&queue);
                drop(queue);
                let reading = reader.read(&queue::path(&key));
                queue = lock(self.queue);
                queue.settle(key, reading);
                self.notify(&queue);
            } else if queue.is_busy() {
                queue = self
                    .changed
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner);
            } else {
                return;
            }
        }
    }

    /// Wake a thread that may claim a directory now, or all at the end.
    fn notify(&self, queue: &Queue<F>) {
        if queue.may_claim() {
            self.changed.notify_one();
        } else if !queue.is_busy() {
            self.changed.notify_all();
        }
    }
}

/// A guard that ends the walk if a thread panics: its claim would never be settled.
struct EndOnPanic<'a, F: Frame>(&'a Work<'a, F>);

impl<F: Frame> Drop for EndOnPanic<'_, F> {
    fn drop(&mut self) {
        if thread::panicking() {
            lock(self.0.queue).fail(Errno::CANCELED, Vec::new());
            self.0.changed.notify_all();
        }
    }
}

fn lock<F>(queue: &Mutex<Queue<F>>) -> MutexGuard<'_, Queue<F>> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}
