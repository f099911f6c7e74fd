//! Decoding listings.

use huai_format::columns::Columns;
use huai_format::listing_diff::ListingPair;
use huai_format::manifest::Listing;
use huai_format::path::RelPath;
use huai_format::shared::Shared;
use huai_format::totals::Totals;
use pyo3::prelude::*;

use super::columns::{Batch, batch};
use crate::sys::errors::refuse;
use crate::sys::guarded::Guarded;
use crate::sys::wait::wait;

/// Bytes of leaves that are counted in less time than the one door to long calls takes.
pub(crate) const SHORT: usize = 64 << 10;

/// The entries of one listing.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Entries(Guarded<Option<ListingPair>>);

#[pymethods]
impl Entries {
    #[new]
    fn new(path: &[u8], attributes: Option<&[u8]>, leaves: &[u8], digests: &[u8]) -> Self {
        let shared = |text: &[u8]| Shared::from(text.to_vec());
        let listing = Listing {
            path: RelPath::trusted(path.to_vec()),
            attributes: shared(attributes.unwrap_or_default()),
            leaves: shared(leaves),
            digests: shared(digests),
        };
        let pair = match attributes {
            Some(_) => ListingPair::new(None, Some(listing), None),
            None => ListingPair::leaves(listing),
        };
        Self(Guarded::new(Some(pair)))
    }

    /// The next entries, about so many; None if there are no more.
    fn batch<'py>(&self, py: Python<'py>, most: usize) -> PyResult<Option<Batch<'py>>> {
        let mut listing = self.0.try_lock()?;
        let mut columns = Columns::new(most);
        if let Some(pair) = &mut *listing {
            if pair.advance(&mut columns).map_err(refuse)? {
                *listing = None;
            }
        }
        batch(py, &columns)
    }
}

/// Files, symlinks, and bytes of files, of the leaves of a directory.
#[pyfunction]
pub(crate) fn leaf_totals(py: Python<'_>, leaves: &[u8]) -> PyResult<(u64, u64, u64)> {
    let found = if leaves.len() < SHORT {
        py.detach(|| Totals::of(leaves))
    } else {
        wait(py, |_| Totals::of(leaves))?
    };
    Ok((found.files, found.symlinks, found.bytes))
}
