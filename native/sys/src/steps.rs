//! Counts the steps of an algorithm in tests: their growth is more reliable than a time.

use std::cell::Cell;

thread_local! {
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

/// Count one step of this thread.
pub(crate) fn count() {
    STEPS.set(STEPS.get() + 1);
}

/// Return the steps that `work` takes.
pub(crate) fn of(work: impl FnOnce()) -> u64 {
    let before = STEPS.get();
    work();
    STEPS.get() - before
}
