//! Digests that were found out after their files were committed.

use huai_format::path::RelPath;
use huai_format::snapshots::Listing;
use huai_format::{walks, write};
use pyo3::prelude::*;

use crate::packs::lent::LentSnapshot;
use crate::packs::writer::Writer;
use crate::sys::errors::refuse;
use crate::sys::guarded::Guarded;
use crate::sys::wait::wait;

/// Files with their digests, by path.
#[pyclass(frozen, module = "huai_native._native")]
#[derive(Default)]
pub(crate) struct FoundDigests(Guarded<walks::FoundDigests>);

#[pymethods]
impl FoundDigests {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn __len__(&self) -> usize {
        self.0.lock().len()
    }

    fn gather(&self, path: Vec<u8>, leaves: &[u8], digests: &[u8]) -> PyResult<()> {
        let path = RelPath::trusted(path);
        let gathered = self.0.lock().gather(&path, leaves, digests);
        gathered.map_err(refuse)
    }

    /// Write the objects of `past` with these digests where it has none; returns its root tree.
    fn write(&self, py: Python<'_>, past: LentSnapshot, writer: Writer) -> PyResult<Vec<u8>> {
        let tree = wait(py, |stop| {
            let found_digests = self.0.lock();
            let mut until = writer.until(stop);
            let mut layout = write::Layout::default();
            let mut walk = past.walk();
            while let Some(listing) = walk.next(&past.snapshot)? {
                let Listing {
                    path,
                    attributes,
                    leaves,
                    digests,
                } = &listing;
                let column = found_digests.fill(path, leaves, digests)?;
                let path = path.as_bytes();
                let digests = column.as_deref().unwrap_or(digests);
                layout.add(
                    &write::ListingText {
                        path,
                        attributes,
                        leaves,
                        digests,
                    },
                    &mut until,
                )?;
            }
            layout.finish(&mut until)
        })?;
        Ok(tree.as_bytes().to_vec())
    }
}
