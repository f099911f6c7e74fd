//! Comparing a downstream tree with a snapshot.

use std::collections::HashSet;

use huai_format::path::RelPath;
use huai_format::shared::Shared;
use huai_format::snapshots::{EntryLimit, Listing, Walk};
use huai_plan::selection::{ListingSource, Modes, Selection};
use huai_sys::error::Errno;
use huai_tree::compare::findings::{FindingSink, Findings};
use huai_tree::compare::scope::Scope;
use huai_tree::compare::{self, ComparisonOptions};
use huai_tree::survey::TableFindings;
use huai_tree::walk::owners::OwnerKind;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::table::Candidates;
use crate::packs::lent::{Reader, snapshot};
use crate::packs::read::parse_oid;
use crate::snapshots::columns::{Batch, batch};
use crate::snapshots::filter::{Filter, ModeTable, modes_of};
use crate::sys::errors::{raise, refuse};
use crate::sys::guarded::Guarded;
use crate::sys::wait::wait_checking;

/// An own directory: its path, its tree, true if all below belongs to it.
type Own = (Vec<u8>, Vec<u8>, bool);
/// Path, attributes, leaves, digests.
type Read = (Vec<u8>, Vec<u8>, Vec<u8>, Vec<u8>);
/// The top directory, the directories left out, the path after which it begins.
type Part = (Vec<u8>, HashSet<Vec<u8>>, Vec<u8>);
/// Records, text, wanted entries; entries, files, undigested; the last place; true at the end.
type Compared<'py> = (
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Option<Batch<'py>>,
    (u64, u64, u64),
    Bound<'py, PyBytes>,
    bool,
);

/// Records, text; true at the end.
type Rest<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>, bool);

/// The wanted listings, before filters: an own directory, or listings that were read.
#[derive(FromPyObject)]
enum WantedListings {
    Own(Own),
    Read(Vec<Read>),
}

/// A tree that is being compared.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct TreeComparison {
    comparison: Guarded<compare::TreeComparison<Reader>>,
    modes: Modes,
    owners: Option<(Py<PyAny>, Py<PyAny>)>,
}

#[pymethods]
impl TreeComparison {
    /// Begin to compare the open directory `handle` with the listings that all filters select, within `scope`;
    /// `owners` look up numbers of users and groups, `None` to compare none.  With `content`, files whose content is
    /// to be read are reported; with `opens_up`, a batch ends at an unreadable directory.
    #[new]
    #[pyo3(signature = (handle, snapshot, selection, *, scope, owners, content, opens_up, threads))]
    #[expect(clippy::too_many_arguments, reason = "named ones, of Python")]
    fn new(
        py: Python<'_>,
        handle: u32,
        snapshot: (Py<PyAny>, u64, WantedListings),
        selection: (Vec<Py<Filter>>, ModeTable),
        scope: Part,
        owners: Option<(Py<PyAny>, Py<PyAny>)>,
        content: bool,
        opens_up: bool,
        threads: usize,
    ) -> PyResult<Self> {
        let (filters, modes) = selection;
        let modes = modes_of(modes);
        let (top, left_out, after) = scope;
        let options = ComparisonOptions {
            scope: Scope {
                top,
                left_out,
                after,
            },
            modes,
            owners: owners.is_some(),
            content,
            opens_up,
            threads,
        };
        let opened =
            compare::TreeComparison::open(handle, self::selection(snapshot, &filters)?, options);
        Ok(Self {
            comparison: Guarded::new(opened.map_err(|error| raise(py, &error))?),
            modes,
            owners,
        })
    }

    /// Return about `most` findings of about `steps` further entries.  Returns records, texts and wanted entries; the
    /// numbers of entries, files and files without digest; the key of the last entry; true at the end.
    fn batch<'py>(&self, py: Python<'py>, most: usize, steps: usize) -> PyResult<Compared<'py>> {
        let mut findings = Findings::new(most, steps);
        let (ended, position) = self.advance(py, None, &mut findings)?;
        let Findings { records, wanted } = &findings;
        let totals = records.totals;
        Ok((
            PyBytes::new(py, &records.bytes),
            PyBytes::new(py, &records.text),
            batch(py, wanted)?,
            (totals.entries, totals.files, totals.undigested),
            PyBytes::new(py, &position),
            ended,
        ))
    }

    /// Compare about `steps` entries, and add what is missing or differs to `candidates`; returns records and texts
    /// of the rest, and true at the end.
    fn put_into<'py>(
        &self,
        py: Python<'py>,
        candidates: &Candidates,
        steps: usize,
        check: &Bound<'py, PyAny>,
    ) -> PyResult<Rest<'py>> {
        candidates.change(|table| {
            let mut findings = TableFindings::new(table, self.modes, steps);
            let (ended, _) = self.advance(py, Some(check.as_unbound()), &mut findings)?;
            Ok((
                PyBytes::new(py, &findings.records.bytes),
                PyBytes::new(py, &findings.records.text),
                ended,
            ))
        })
    }

    /// Return the extraneous leaves that were found and are not reported yet.
    fn waiting<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        let waiting = self.comparison.lock().waiting();
        waiting.iter().map(|path| PyBytes::new(py, path)).collect()
    }

    /// Drop these extraneous leaves, so that they are not reported.
    fn forget(&self, paths: HashSet<Vec<u8>>) {
        self.comparison.lock().forget(paths);
    }
}

impl TreeComparison {
    /// Compare until `to` is full, calling `check` ten times a second.  Returns true at the end,
    /// and the place of the last entry; an exception of a lent function is raised.
    fn advance(
        &self,
        py: Python<'_>,
        check: Option<&Py<PyAny>>,
        to: &mut (impl FindingSink + Send),
    ) -> PyResult<(bool, Vec<u8>)> {
        let raised = Guarded::new(None);
        let number_of = |kind, name: &[u8]| {
            self.number(kind, name).map_err(|error| {
                let mut raised = raised.lock();
                raised.get_or_insert(error);
                Errno::CANCELED
            })
        };
        let outcome = wait_checking(py, check, |stop| {
            let mut comparison = self.comparison.lock();
            let ended = comparison.advance(&number_of, stop, to);
            PyResult::Ok(ended.map(|ended| (ended, comparison.position())))
        })?;
        match raised.into_inner() {
            Some(error) => Err(error),
            None => outcome.map_err(refuse),
        }
    }

    /// Call Python for the number of an owner; `None` if it is unknown, or owners are not compared.
    fn number(&self, kind: OwnerKind, name: &[u8]) -> PyResult<Option<u32>> {
        let Some((user, group)) = &self.owners else {
            return Ok(None);
        };
        let number_of = match kind {
            OwnerKind::User => user,
            OwnerKind::Group => group,
        };
        Python::attach(|py| number_of.call1(py, (PyBytes::new(py, name),))?.extract(py))
    }
}

/// Return the selection of the wanted listings by filters, all of which must reach an entry; an
/// exception for an id of the wrong length.
fn selection(
    (reader, limit, wanted): (Py<PyAny>, u64, WantedListings),
    filters: &[Py<Filter>],
) -> PyResult<Selection<Reader>> {
    let selectors = filters.iter().map(|each| each.get().selector()).collect();
    let (tree, source) = match wanted {
        WantedListings::Own((path, tree, deep)) => {
            let path = RelPath::trusted(path);
            let walk = Walk::below(path, parse_oid(&tree)?, EntryLimit::new(limit));
            (
                tree,
                ListingSource::Walk(if deep { walk } else { walk.shallow() }),
            )
        }
        WantedListings::Read(listings) => {
            let listing = |(path, attributes, leaves, digests): Read| Listing {
                path: RelPath::trusted(path),
                attributes: Shared::from(attributes),
                leaves: Shared::from(leaves),
                digests: Shared::from(digests),
            };
            let listings = listings.into_iter().map(listing).collect();
            (vec![0; 20], ListingSource::Read(listings))
        }
    };
    Ok(Selection::new(snapshot(reader, &tree)?, source, selectors))
}
