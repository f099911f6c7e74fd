//! Publish rules, and the order in which they put a snapshot.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::MutexGuard;

use huai_git::error::Error;
use huai_plan::order::{
    self, Marker, NameLookup, Order, Profile, StagePattern, StageRule, Table, first,
};
use huai_sys::stop::Stop;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::plan::Plan;
use super::table_rows::TableRows;
use crate::packs::lent::{LentSnapshot, Reader};
use crate::sys::errors::refuse;
use crate::sys::guarded::Guarded;
use crate::sys::wait::wait;

/// Components; true if it matches symlinks only.
type PatternRow = (Vec<Vec<u8>>, bool);
/// The first rule, and the end of the rules.
type RuleRange = (usize, usize);
/// Lists of markers, and places of rules.
type ProfileRow = (Vec<Vec<Vec<u8>>>, RuleRange);
/// Stage, rule, repository.
type Placed = (u8, Option<usize>, Option<usize>);
/// Top, profile, which of its lists of markers is there.
type RepositoryRow<'py> = (Bound<'py, PyBytes>, usize, Option<usize>);

/// Convert a pattern of Python's.
fn pattern((components, symlinks): PatternRow) -> StagePattern {
    StagePattern::new(components.iter().map(Vec::as_slice), symlinks)
}

/// Files and symlinks: the path of each, true for a symlink.
#[derive(FromPyObject)]
enum Leaves<'py> {
    Planned(Bound<'py, Plan>),
    Listed(Vec<(Vec<u8>, bool)>),
}

/// Return the stage of each file or symlink, a byte each, in order; fewer after a stop.
fn stages<'a>(
    order: &mut Order<Reader>,
    items: impl Iterator<Item = (&'a [u8], bool)>,
    stop: &Stop,
) -> Result<Vec<u8>, Error> {
    let remaining = items.take_while(|_| !stop.is_set());
    remaining
        .map(|(path, symlink)| order.stage(path, symlink))
        .collect()
}

/// Patterns of publish rules.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct PublishPatterns(Vec<StagePattern>);

#[pymethods]
impl PublishPatterns {
    #[new]
    fn new(patterns: Vec<PatternRow>) -> Self {
        Self(patterns.into_iter().map(pattern).collect())
    }

    /// Return the place of the first matching pattern for each path, `None` without one.
    #[pyo3(signature = (paths, *, symlink))]
    fn first(&self, paths: TableRows, symlink: bool) -> Vec<Option<usize>> {
        let paths = paths.paths();
        paths.map(|path| first(&self.0, path, symlink)).collect()
    }
}

/// The stages of the paths of one snapshot.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct PublishOrder(Guarded<Order<Reader>>);

#[pymethods]
impl PublishOrder {
    #[new]
    #[pyo3(signature = (lent, rules, *, volatile, stated, generic, profiles, assigned))]
    #[expect(clippy::too_many_arguments, reason = "named ones, of Python")]
    fn new(
        lent: LentSnapshot,
        rules: Vec<(PatternRow, u8)>,
        volatile: RuleRange,
        stated: RuleRange,
        generic: RuleRange,
        profiles: Vec<ProfileRow>,
        assigned: HashMap<Vec<u8>, Option<usize>>,
    ) -> Self {
        let rule = |(row, stage)| StageRule {
            pattern: pattern(row),
            stage,
        };
        let table = Table {
            rules: rules.into_iter().map(rule).collect(),
            volatile: range(volatile),
            stated: range(stated),
            generic: range(generic),
            profiles: profiles.into_iter().map(profile).collect(),
            assigned,
        };
        let lookup = NameLookup::new(lent.snapshot, lent.limit);
        Self(Guarded::new(Order::new(table, lookup)))
    }

    /// Return the stage of each leaf as a byte, in order.
    fn stages<'py>(&self, py: Python<'py>, items: Leaves<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut order = self.lock()?;
        let order = &mut *order;
        let stages = match items {
            Leaves::Planned(plan) => {
                let plan = plan.get();
                wait(py, |stop| stages(order, plan.paths_for_stages(), stop))
            }
            Leaves::Listed(items) => wait(py, |stop| {
                let items = items.iter().map(|(path, symlink)| (&**path, *symlink));
                stages(order, items, stop)
            }),
        };
        Ok(PyBytes::new(py, &stages?))
    }

    /// Return the stage of a path, the place of the rule that decided, and the number of the
    /// repository of that rule or else of the innermost one around.
    #[pyo3(signature = (path, *, symlink))]
    fn placement(&self, path: &[u8], symlink: bool) -> PyResult<Placed> {
        let placed = self.lock()?.placement(path, symlink).map_err(refuse)?;
        let order::Placement {
            stage,
            rule,
            repository,
        } = placed;
        Ok((stage, rule, repository))
    }

    /// Return the numbers of the repositories around a directory, outermost first.
    fn around(&self, folder: &[u8]) -> PyResult<Vec<usize>> {
        let around = self.lock()?.around(folder).map_err(refuse)?;
        Ok(around.to_vec())
    }

    /// Return the number of repositories found so far.
    #[pyo3(name = "found")]
    fn repository_count(&self) -> PyResult<usize> {
        Ok(self.lock()?.repositories().len())
    }

    /// Return a repository by its number; `IndexError` beyond the last.
    fn repository<'py>(&self, py: Python<'py>, number: usize) -> PyResult<RepositoryRow<'py>> {
        let order = self.lock()?;
        let repository = order.repositories().get(number);
        let it = repository.ok_or_else(|| PyIndexError::new_err(number))?;
        Ok((PyBytes::new(py, &it.top), it.profile, it.found_by))
    }

    fn is_directory(&self, path: &[u8]) -> PyResult<bool> {
        self.lock()?.lookup().is_directory(path).map_err(refuse)
    }

    fn has_entry(&self, path: &[u8]) -> PyResult<bool> {
        self.lock()?.lookup().has_entry(path).map_err(refuse)
    }
}

impl PublishOrder {
    /// Lock the order; an exception while another call uses it.
    fn lock(&self) -> PyResult<MutexGuard<'_, Order<Reader>>> {
        self.0.try_lock()
    }
}

fn range((begin, end): RuleRange) -> Range<usize> {
    begin..end
}

/// Convert a profile of Python's: markers by list, and the range of its rules.
fn profile((tops, rules): ProfileRow) -> Profile {
    let markers = |texts: Vec<Vec<u8>>| texts.iter().map(|text| Marker::new(text)).collect();
    Profile {
        tops: tops.into_iter().map(markers).collect(),
        rules: range(rules),
    }
}
