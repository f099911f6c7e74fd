//! The counts of files and bytes that this process has read.

use huai_sys::progress;
use pyo3::prelude::*;

#[pyfunction]
pub(crate) fn progress_so_far() -> (u64, u64) {
    progress::so_far()
}
