//! Counts what this process has scanned and read, for people who wait for it.

use std::sync::atomic::{AtomicU64, Ordering};

static FILES: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

/// Count files that were scanned.
pub fn count_files(files: usize) {
    FILES.fetch_add(files as u64, Ordering::Relaxed);
}

/// Count bytes of content that were read.
pub fn count_bytes(bytes: usize) {
    BYTES.fetch_add(bytes as u64, Ordering::Relaxed);
}

/// Return the files and bytes so far, of all calls in this process.
pub fn so_far() -> (u64, u64) {
    (FILES.load(Ordering::Relaxed), BYTES.load(Ordering::Relaxed))
}
