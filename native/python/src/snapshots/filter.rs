//! Filters, and the modes of what they select.

use std::sync::Arc;

use huai_plan::filter::{self, Rule, Selector, Side};
use huai_plan::selection::{ModeRule, Modes};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::sys::guarded::Guarded;

/// For files and directories: kept bits, set bits; true if existing entries keep their mode.
pub(crate) type ModeTable = ((u16, u16), (u16, u16), bool);

/// A pattern; true if the rule includes, is of the sender, is of the receiver, is negated.
type Row = (Vec<u8>, bool, bool, bool, bool);

/// rsync's filter rules.
#[pyclass(frozen, module = "huai_native._native")]
pub(crate) struct Filter(Guarded<Selector>);

#[pymethods]
impl Filter {
    #[new]
    fn new(rules: Vec<Row>) -> Self {
        let rule = |(pattern, include, sender, receiver, negated): Row| {
            let side = match (sender, receiver) {
                (_, false) => Side::Sender,
                (false, true) => Side::Receiver,
                (true, true) => Side::Both,
            };
            Rule::new(side, include, negated, &pattern)
        };
        let rules = filter::Filter::new(rules.into_iter().map(rule).collect());
        Self(Guarded::new(Selector::new(Arc::new(rules))))
    }

    #[pyo3(signature = (path, *, directory))]
    fn reaches(&self, path: &[u8], directory: bool) -> bool {
        self.0.lock().reaches(path, directory)
    }

    /// Return true if a rule that matches `path` itself protects it from deletion.
    #[pyo3(signature = (path, *, directory))]
    fn protects(&self, path: &[u8], directory: bool) -> bool {
        self.0.lock().filter.protects(path, directory)
    }

    /// Return the place of the rule that decides about `path`, and the path that it matched; `None`
    /// without one.
    #[pyo3(signature = (path, *, directory))]
    fn why<'py>(
        &self,
        py: Python<'py>,
        path: &[u8],
        directory: bool,
    ) -> Option<(usize, Bound<'py, PyBytes>)> {
        let (place, matched) = self.0.lock().filter.why(path, directory)?;
        Some((place, PyBytes::new(py, matched)))
    }

    fn is_alike_below(&self, one: &[u8], other: &[u8]) -> bool {
        self.0.lock().filter.is_alike_below(one, other)
    }
}

impl Filter {
    /// Make a selector of this filter with an empty cache.
    pub(crate) fn selector(&self) -> Selector {
        Selector::new(Arc::clone(&self.0.lock().filter))
    }
}

/// Convert Python's table of modes.
pub(crate) fn modes_of((file, directory, local): ModeTable) -> Modes {
    let rule = |(kept, set)| ModeRule { kept, set };
    Modes {
        file: rule(file),
        directory: rule(directory),
        local,
    }
}
