//! The plan of shards.

use std::collections::{BTreeMap, HashMap};

use huai_format::path::RelPath;
use huai_format::snapshots::EntryLimit;
use huai_format::walks;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::packs::lent::LentSnapshot;
use crate::packs::read::parse_oid;
use crate::sys::wait::wait;

#[pyfunction]
pub(crate) fn plan_shards(
    py: Python<'_>,
    lent: LentSnapshot,
    most: u64,
    known: HashMap<Vec<u8>, u64>,
    labelled: Vec<Vec<u8>>,
) -> PyResult<Vec<(Bound<'_, PyBytes>, u64)>> {
    let counts = known
        .iter()
        .map(|(tree, entries)| PyResult::Ok((parse_oid(tree)?, *entries)));
    let counts = counts.collect::<PyResult<BTreeMap<_, _>>>()?;
    let labelled = labelled.into_iter().map(RelPath::trusted).collect();
    let cut = walks::Cut::new(most, labelled);
    let planned = wait(py, move |_| {
        let LentSnapshot { snapshot, limit } = &lent;
        walks::plan_shards(snapshot, EntryLimit::new(*limit), &cut, &counts)
    })?;
    let planned = planned
        .into_iter()
        .map(|(path, entries)| (PyBytes::new(py, path.as_bytes()), entries));
    Ok(planned.collect())
}
