//! Directories that are read ahead, in tree order, by some threads.
//!
//! They work within one call; between two calls there is no thread.  What waits is taken in tree
//! order too, so they work right ahead of the caller, and with one thread the same system calls
//! come in the same order.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder};

use rustix::io::Errno;

use super::queue::{self, Frame, Queue, Reading};
use crate::sys::call::Outcome;
use crate::sys::error::{Error, Result};

const THREADS_MAX: usize = 64;

/// Reads directories; one for each thread.
pub(crate) trait Read {
    /// What it says of a directory.
    type Frame: Frame + Send;

    /// Reads the directory at `path`; an error ends it all.
    fn read(&mut self, path: &[u8]) -> Outcome<Reading<Self::Frame>>;
}

/// Directories on their way to the caller.
#[derive(Debug)]
pub(crate) struct Ahead<F> {
    queue: Mutex<Queue<F>>,
}

/// What the threads of one call share.
struct Work<'a, F> {
    queue: &'a Mutex<Queue<F>>,
    changed: Condvar,
}

impl<F: Frame + Send> Ahead<F> {
    /// Begins at the directory `top`.
    pub(crate) fn new(top: &[u8]) -> Self {
        Self {
            queue: Mutex::new(Queue::new(top)),
        }
    }

    /// The next frames, as far as they are there already; none may still mean that some follow.
    pub(crate) fn ready(&mut self) -> Vec<F> {
        let queue = self.queue.get_mut();
        queue.unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The next frames; none: that was all.  After an error there is nothing but that error.
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
                // Fewer threads than asked for are a slower scan, no error.
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
    fn run(&self, mut reader: impl Read<Frame = F>) {
        let _on_panic = EndOnPanic(self);
        let mut queue = lock(self.queue);
        loop {
            if let Some(key) = queue.claim() {
                self.tell(&queue);
                drop(queue);
                let reading = reader.read(&queue::path(&key));
                queue = lock(self.queue);
                queue.settle(key, reading);
                self.tell(&queue);
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

    /// Wakes who may claim something now, or all when nothing will come any more.
    fn tell(&self, queue: &Queue<F>) {
        if queue.may_claim() {
            self.changed.notify_one();
        } else if !queue.is_busy() {
            self.changed.notify_all();
        }
    }
}

/// A thread that panics ends it all: nobody would settle what it has claimed.
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
