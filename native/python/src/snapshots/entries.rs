//! Decoding listings.

use huai_format::diff::{Columns, ListingPair, Sink};
use huai_format::entries::Entry;
use huai_format::path::RelPath;
use huai_format::shared::Shared;
use huai_format::snapshots::Listing;
use huai_plan::filter::Selector;
use pyo3::prelude::*;

use super::columns::{Batch, batch};
use super::filter::Filter;
use crate::sys::errors::refuse;
use crate::sys::guarded::Guarded;

/// The entries of one listing, or those that a filter selects.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Entries(Guarded<(Option<ListingPair>, Option<Selector>)>);

#[pymethods]
impl Entries {
    /// Decode a listing: the directory itself, unless `attributes` is `None`, and its leaves; with `selected` only
    /// those that it selects.
    #[new]
    #[pyo3(signature = (path, attributes, leaves, digests, selected=None))]
    fn new(
        path: &[u8],
        attributes: Option<&[u8]>,
        leaves: &[u8],
        digests: &[u8],
        selected: Option<Py<Filter>>,
    ) -> Self {
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
        let selector = selected.map(|filter| filter.get().selector());
        Self(Guarded::new((Some(pair), selector)))
    }

    /// Return about `most` further entries; `None` if there are no more.
    fn batch<'py>(&self, py: Python<'py>, most: usize) -> PyResult<Option<Batch<'py>>> {
        let (listing, selector) = &mut *self.0.try_lock()?;
        let mut columns = Columns::new(most);
        if let Some(pair) = listing {
            let ended = match selector {
                Some(selector) => pair.advance(&mut Selected(&mut columns, selector)),
                None => pair.advance(&mut columns),
            };
            if ended.map_err(refuse)? {
                *listing = None;
            }
        }
        batch(py, &columns)
    }
}

/// A receiver of the new entries that a filter selects.
struct Selected<'a>(&'a mut Columns, &'a mut Selector);

impl Sink for Selected<'_> {
    fn is_full(&self) -> bool {
        self.0.is_full()
    }

    fn change(&mut self, directory: &RelPath, _: Option<&Entry<'_>>, new: Option<&Entry<'_>>) {
        let Self(columns, selector) = self;
        let new = new.and_then(|entry| selector.admit(directory, entry.clone()));
        columns.change(directory, None, new.as_ref());
    }

    fn moved(&mut self, _: &RelPath, _: &RelPath) {}
}
