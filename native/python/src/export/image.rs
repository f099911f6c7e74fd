//! Building EROFS images.

use huai_export::erofs::ImageBuilder;
use huai_git::error::Result;
use huai_tree::image::ImageFile;
use pyo3::prelude::*;

use super::attr_tree::look_up;
use crate::snapshots::listings::for_each_listing;
use crate::sys::errors::raise;
use crate::sys::wait::wait;

/// Write an image to the empty file at `path` from the listings: those with hardlinks, then all.
/// Returns the number of blocks, `None` if they are too many, and that of entries.
#[pyfunction]
pub(crate) fn write_image(
    py: Python<'_>,
    path: &[u8],
    listings: [Py<PyAny>; 2],
    pair: Py<PyAny>,
    uuid: [u8; 16],
) -> PyResult<(Option<u32>, u64)> {
    let file = ImageFile::open(path).map_err(|error| raise(py, &error))?;
    let [first, second] = &listings;
    wait(py, |stop| {
        let mut builder = ImageBuilder::new(file);
        for_each_listing(first, stop, |listing| {
            builder.count_links(listing.path, listing.leaves)
        })?;
        let mut owners = |user: &[u8], group: &[u8]| look_up(&pair, user, group);
        for_each_listing(second, stop, |listing| {
            builder.add(
                listing.path,
                listing.attributes,
                listing.leaves,
                &mut owners,
            )
        })?;
        Result::Ok((builder.finish(&uuid)?, builder.entries()))
    })
}
