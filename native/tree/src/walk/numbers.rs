//! Looks up the numbers of users and groups, each name once.
//!
//! The caller provides the lookup: the C library does it, and Python calls it.

use std::collections::HashMap;

use huai_sys::call::Outcome;

use super::owners::OwnerKind;

/// A lookup of the number of a name; `None` if it is unknown on this machine, an error if the
/// lookup fails.
pub type NumberOf<'a> = dyn Fn(OwnerKind, &[u8]) -> Outcome<Option<u32>> + Send + 'a;

/// The names of one kind that were looked up so far.
#[derive(Debug, Default)]
struct KnownNumbers {
    last: Option<(Vec<u8>, Option<u32>)>,
    all: HashMap<Vec<u8>, Option<u32>>,
}

/// The numbers of users and groups.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    users: KnownNumbers,
    groups: KnownNumbers,
}

impl Numbers {
    /// Return the number of `name`, if it has one; each name is looked up once.
    pub(crate) fn number(
        &mut self,
        kind: OwnerKind,
        name: &[u8],
        number_of: &NumberOf<'_>,
    ) -> Outcome<Option<u32>> {
        let numbers = match kind {
            OwnerKind::User => &mut self.users,
            OwnerKind::Group => &mut self.groups,
        };
        Ok(match &numbers.last {
            Some((last, number)) if *last == name => *number,
            _ => {
                let number = match numbers.all.get(name) {
                    Some(number) => *number,
                    None => number_of(kind, name)?,
                };
                numbers.all.insert(name.to_vec(), number);
                numbers.last = Some((name.to_vec(), number));
                number
            }
        })
    }
}
