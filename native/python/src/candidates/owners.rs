//! Numbers of users and groups by name, as Python knows them.

use std::collections::HashMap;
use std::mem::replace;

use huai_plan::candidates::{Candidates, Row};
use huai_tree::survey::Numbers;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// A cache of the numbers of users and groups; None for a name that is unknown here.
pub(crate) struct Owners {
    user: Names,
    group: Names,
}

/// The numbers of users, or of groups.
struct Names {
    look_up: Py<PyAny>,
    known: HashMap<Vec<u8>, Option<u32>>,
}

impl Names {
    fn new(look_up: Py<PyAny>) -> Self {
        Self {
            look_up,
            known: HashMap::new(),
        }
    }

    /// Return the number of a name, `None` if it is unknown here; Python is asked once for each.
    fn number(&mut self, py: Python<'_>, name: &[u8]) -> PyResult<Option<u32>> {
        if let Some(number) = self.known.get(name) {
            return Ok(*number);
        }
        let number = self.look_up.call1(py, (PyBytes::new(py, name),))?;
        let number = number.extract(py)?;
        self.known.insert(name.to_vec(), number);
        Ok(number)
    }
}

impl Owners {
    /// Make a cache for functions that return the number of a user and of a group.
    pub(crate) fn new((user, group): (Py<PyAny>, Py<PyAny>)) -> Self {
        Self {
            user: Names::new(user),
            group: Names::new(group),
        }
    }

    /// Return the numbers of the owners of all wanted entries in `rows`, by position in `table`: of
    /// the user and of the group of that name, `None` if it is not needed or unknown here.
    pub(crate) fn numbers<'a>(
        &mut self,
        py: Python<'_>,
        table: &Candidates,
        rows: impl Iterator<Item = &'a Row>,
    ) -> PyResult<Numbers> {
        let names = table.owners();
        let mut numbers = vec![(None, None); names.len()];
        let mut looked_up = vec![(false, false); names.len()];
        for wanted in rows.filter_map(|row| row.wanted) {
            let (user, group) = (wanted.owner as usize, wanted.group as usize);
            if !replace(&mut looked_up[user].0, true) {
                numbers[user].0 = self.user.number(py, &names[user])?;
            }
            if !replace(&mut looked_up[group].1, true) {
                numbers[group].1 = self.group.number(py, &names[group])?;
            }
        }
        Ok(numbers)
    }
}
