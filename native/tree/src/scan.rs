//! A whole tree, directory by directory, in tree order.
//!
//! Some threads read directories ahead, as far as is allowed, within one call; between two calls
//! there is no thread.  What waits is taken in tree order too, so they work right ahead of the
//! caller, and with one thread the same system calls come in the same order.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder};

use rustix::io::Errno;

use crate::directory::{Frame, Reader, Tree};
use crate::error::{Error, Result};
use crate::exclude::Pattern;
use crate::handle::Root;
use crate::owners::{LookUp, Owners};
use crate::queue::{self, Queue};
use crate::stop::Stop;

const THREADS_MAX: usize = 64;

/// How to scan.
#[derive(Debug)]
pub struct Options {
    /// What is left out.
    pub patterns: Vec<Pattern>,
    /// List a mount point as an empty directory.
    pub one_file_system: bool,
    /// Record owners and groups; otherwise everything belongs to root.
    pub owners: bool,
    /// Directories looked at at the same time.
    pub threads: usize,
}

/// A tree on its way to the caller.
#[derive(Debug)]
pub struct Scan {
    root: Root,
    options: Options,
    owners: Owners,
    queue: Mutex<Queue>,
}

/// What the threads of one call share.
struct Work<'a> {
    tree: Tree<'a>,
    queue: &'a Mutex<Queue>,
    changed: Condvar,
}

impl Scan {
    /// Begins at the directory `root`, which may be a symlink.
    pub fn open(root: &[u8], options: Options) -> Result<Self> {
        Ok(Self {
            root: Root::open(root)?,
            options,
            owners: Owners::default(),
            queue: Mutex::new(Queue::new()),
        })
    }

    /// The next frames, as far as they are there already; none may still mean that some follow.
    pub fn ready(&mut self) -> Vec<Frame> {
        let queue = self.queue.get_mut();
        queue.unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The next frames; none: that was all.  After an error there is nothing but that error.
    pub fn next(&mut self, look_up: &LookUp<'_>, stop: &Stop) -> Result<Vec<Frame>> {
        loop {
            let batch = self.ready();
            if !batch.is_empty() || lock(&self.queue).is_finished() {
                return Ok(batch);
            }
            self.read_ahead(look_up, stop)?;
        }
    }

    fn read_ahead(&self, look_up: &LookUp<'_>, stop: &Stop) -> Result<()> {
        let work = Work {
            tree: Tree {
                root: &self.root,
                options: &self.options,
                owners: &self.owners,
                look_up,
                stop,
            },
            queue: &self.queue,
            changed: Condvar::new(),
        };
        let full = lock(&self.queue).is_full();
        let threads = if full { 1 } else { self.options.threads };
        thread::scope(|scope| {
            // This thread is one of them.
            for _ in 1..threads.min(THREADS_MAX) {
                // Fewer threads than asked for are a slower scan, no error.
                let started = Builder::new().spawn_scoped(scope, || work.run());
                if started.is_err() {
                    break;
                }
            }
            work.run();
        });
        match lock(&self.queue).failure() {
            None => Ok(()),
            Some((errno, path)) => Err(Error::new("read", path, *errno)),
        }
    }
}

impl Work<'_> {
    fn run(&self) {
        let _on_panic = EndOnPanic(self);
        let mut reader = Reader::default();
        let mut queue = lock(self.queue);
        loop {
            if let Some(key) = queue.claim() {
                self.tell(&queue);
                drop(queue);
                let reading = reader.read(&self.tree, &queue::path(&key));
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
    fn tell(&self, queue: &Queue) {
        if queue.may_claim() {
            self.changed.notify_one();
        } else if !queue.is_busy() {
            self.changed.notify_all();
        }
    }
}

/// A thread that panics ends the scan: nobody would settle what it has claimed.
struct EndOnPanic<'a>(&'a Work<'a>);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            lock(self.0.queue).fail(Errno::CANCELED, Vec::new());
            self.0.changed.notify_all();
        }
    }
}

fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}
