//! Block indices of large files, and files put together by them.

use std::ops::Range;

use huai_format::content::block_index::{self, may_have_index};
use huai_format::entries::Digest;
use huai_tree::hashing::hash::Content;
use huai_tree::large::assemble as engine;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::sys::errors::{raise, refuse};
use crate::sys::wait::{wait, wait_reporting};

/// The blocks of one file.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct BlockIndex(pub(crate) block_index::BlockIndex);

#[pymethods]
impl BlockIndex {
    /// Decode an index; an exception unless it is that of a file of this size and digest.
    #[staticmethod]
    fn decode(py: Python<'_>, data: &[u8], size: u64, digest: &[u8]) -> PyResult<Self> {
        let digest: Digest = digest
            .try_into()
            .map_err(|_| PyValueError::new_err("a digest has 32 bytes"))?;
        let index = py.detach(|| block_index::BlockIndex::decode(data, size, &digest));
        index.map(Self).map_err(refuse)
    }

    /// Hash an open file by blocks of `block` bytes; `None` if it is too small for an index, or its
    /// size changed meanwhile.
    #[staticmethod]
    fn of_file(py: Python<'_>, handle: u32, block: u64, threads: usize) -> PyResult<Option<Self>> {
        let content = Content::reopen(handle).map_err(|error| raise(py, &error))?;
        if !may_have_index(content.size) {
            return Ok(None);
        }
        let index = wait(py, |stop| content.index(block, threads, stop))?;
        Ok(index.map(Self))
    }

    #[staticmethod]
    fn length(size: u64) -> u64 {
        block_index::length(size)
    }

    /// Return the bytes in blocks that a local file with the index `older` does not have.
    #[pyo3(signature = (older))]
    fn unknown_bytes(&self, py: Python<'_>, older: Option<&Self>) -> u64 {
        let index = &self.0;
        py.detach(|| index.unknown_bytes(&index.sources(older.map(|older| &older.0))))
    }

    /// Return the ranges of bytes that the file does not have in common with `older` at their
    /// places.
    fn changed_ranges(&self, older: &Self) -> Ranges {
        let sources = self.0.sources(Some(&older.0));
        pairs(engine::changed_ranges(&self.0, &sources))
    }

    /// Fill the open file `target` with the blocks that local files have; returns the missing ranges, counts of
    /// bytes, and true if it shares blocks with the old file.  `hear` gets the bytes so far, and ends the call by
    /// returning false.
    fn assemble(
        &self,
        py: Python<'_>,
        target: u32,
        sources: Sources<'_>,
        threads: usize,
        hear: &Bound<'_, PyAny>,
    ) -> PyResult<Assembled> {
        let (older, old, partial, copies) = sources;
        let older = older.as_ref().map(|older| &older.0);
        let assembled = wait_reporting(py, hear.as_unbound(), |done, stop| {
            let sources = engine::Sources {
                old,
                blocks: &self.0.sources(older),
                partial,
                copies,
            };
            engine::assemble(target, &self.0, sources, threads, (done, stop))
        })?;
        let bytes = (assembled.same, assembled.found, assembled.zeros);
        Ok((pairs(assembled.missing), bytes, assembled.is_clone))
    }

    #[getter]
    fn block_size(&self) -> u64 {
        self.0.block_size()
    }

    fn digest<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.digest())
    }

    fn encode<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.encode())
    }

    /// Return the blocks in `ranges` whose content in an open file is another one or cannot be read.
    fn wrong_ranges(
        &self,
        py: Python<'_>,
        handle: u32,
        ranges: Ranges,
        threads: usize,
    ) -> PyResult<Ranges> {
        let ranges: Vec<_> = ranges.into_iter().map(|(begin, end)| begin..end).collect();
        let wrong = wait(py, |stop| {
            engine::wrong_ranges(handle, &self.0, &ranges, threads, stop)
        })?;
        Ok(pairs(wrong))
    }
}

/// An older version's index and file, what an interrupted run left, true to copy.
type Sources<'a> = (
    Option<PyRef<'a, BlockIndex>>,
    Option<u32>,
    Option<u32>,
    bool,
);

/// Begin and end of ranges of bytes.
type Ranges = Vec<(u64, u64)>;

/// The missing ranges; bytes that were at their place, elsewhere, and that are zeros; true if the
/// new file shares the blocks of the old one.
type Assembled = (Ranges, (u64, u64, u64), bool);

/// Give an open file the size of `patch` and its content in `ranges`, on disk.
#[pyfunction]
pub(crate) fn patch_file(py: Python<'_>, target: u32, patch: u32, ranges: Ranges) -> PyResult<()> {
    let ranges: Vec<_> = ranges.into_iter().map(|(begin, end)| begin..end).collect();
    wait(py, |stop| engine::patch(target, patch, &ranges, stop))
}

/// Reserve the space that `patch_file` needs; an `OSError` if there is too little.
#[pyfunction]
pub(crate) fn reserve_patch(
    py: Python<'_>,
    target: u32,
    patch: u32,
    ranges: Ranges,
) -> PyResult<()> {
    let ranges: Vec<_> = ranges.into_iter().map(|(begin, end)| begin..end).collect();
    wait(py, |_| engine::reserve(target, patch, &ranges))
}

/// Convert ranges to begin and end.
fn pairs(ranges: Vec<Range<u64>>) -> Ranges {
    let pair = |range: Range<u64>| (range.start, range.end);
    ranges.into_iter().map(pair).collect()
}
