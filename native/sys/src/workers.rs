//! Runs the threads of one call.

use std::panic::resume_unwind;
use std::thread::{self, Builder};

/// Run `work` in `threads` threads, including the caller's, and return all results, in any order.
/// If fewer threads can be started, fewer do the work.  Panics if one of them does.
pub fn run<T: Send>(threads: usize, work: impl Fn() -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let spawn = |_| Builder::new().spawn_scoped(scope, &work).ok();
        let workers: Vec<_> = (1..threads).map_while(spawn).collect();
        let mut results = vec![work()];
        let join = |worker: thread::ScopedJoinHandle<'_, T>| worker.join();
        results.extend(
            workers
                .into_iter()
                .map(|worker| join(worker).unwrap_or_else(|panic| resume_unwind(panic))),
        );
        results
    })
}
