//! The engine as the Python module `huai_native._native`.
//!
//! Converts, waits, converts: no policy, and no loop over entries.

use pyo3::prelude::*;

/// What runs once for each entry.
#[pymodule(gil_used = false)]
mod _native {}
