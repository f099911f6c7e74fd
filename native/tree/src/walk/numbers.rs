//! Numbers of users and groups, each name asked for once.
//!
//! Who knows them is told by the caller: the C library does, and Python calls it.

use std::collections::HashMap;

use super::owners::Kind;
use crate::sys::call::Outcome;

/// Gives the number of a name; none: it is unknown on this machine.  An error: nobody can be asked.
pub type NumberOf<'a> = dyn Fn(Kind, &[u8]) -> Outcome<Option<u32>> + Send + 'a;

/// The names of one kind that were asked for so far.
#[derive(Debug, Default)]
struct Known {
    last: Option<(Vec<u8>, Option<u32>)>,
    all: HashMap<Vec<u8>, Option<u32>>,
}

/// Users and groups.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    users: Known,
    groups: Known,
}

impl Numbers {
    /// The number of `name`; none: it is unknown.
    pub(crate) fn number(
        &mut self,
        kind: Kind,
        name: &[u8],
        number_of: &NumberOf<'_>,
    ) -> Outcome<Option<u32>> {
        let known = match kind {
            Kind::User => &mut self.users,
            Kind::Group => &mut self.groups,
        };
        Ok(match &known.last {
            Some((last, found)) if *last == name => *found,
            _ => {
                let found = match known.all.get(name) {
                    Some(found) => *found,
                    None => number_of(kind, name)?,
                };
                known.all.insert(name.to_vec(), found);
                known.last = Some((name.to_vec(), found));
                found
            }
        })
    }
}
