//! Searches for names in snapshots.

use std::time::{Duration, Instant};

use huai_format::path::RelPath;
use huai_format::search::{self, Search, SearchEnd, SearchText};
use pyo3::prelude::*;

use super::columns::{Batch, batch};
use crate::packs::lent::LentSnapshot;
use crate::sys::errors::refuse;
use crate::sys::guarded::Guarded;

/// The names of a module's snapshots.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct NameIndex(Guarded<search::NameIndex>);

#[pymethods]
impl NameIndex {
    #[new]
    fn new(most: usize) -> Self {
        Self(Guarded::new(search::NameIndex::new(most)))
    }

    fn search<'py>(
        &self,
        py: Python<'py>,
        lent: LentSnapshot,
        query: (Vec<u8>, Vec<u8>, usize),
        seconds: f64,
    ) -> PyResult<(Option<Batch<'py>>, Option<&'static str>, usize)> {
        let (below, text, most) = query;
        let limit = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let search = Search {
            below: RelPath::trusted(below),
            text: SearchText::parse(&text),
            most,
        };
        let mut lookup = lent.lookup();
        let begun = Instant::now();
        // Bounded in time, and called by a server's threads, which no signal reaches: a thread
        // for each module would cost more than a search in most of them.
        let outcome = py.detach(|| {
            let mut names = self.0.lock();
            let results = search.run(&mut names, &mut lookup, &|| begun.elapsed() >= limit);
            results.map(|results| (results, names.bytes()))
        });
        let ((entries, end), bytes) = outcome.map_err(refuse)?;
        let ended_by = match end {
            SearchEnd::Complete => None,
            SearchEnd::Full => Some("hits"),
            SearchEnd::Stopped => Some("time"),
        };
        Ok((batch(py, &entries)?, ended_by, bytes))
    }
}
