//! Names of users and groups, each asked for once a scan.
//!
//! Who knows them is told by the caller: the C library does, and Python calls it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use huai_format::entry::ROOT_OWNER;
use huai_format::escape::put_escaped;
use rustix::io::Errno;

/// Whose name is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A user.
    User,
    /// A group.
    Group,
}

/// Gives the name of an id, as metadata have it; an error: nobody can be asked.
pub type LookUp<'a> = dyn Fn(Kind, u32) -> Result<Vec<u8>, Errno> + Sync + 'a;

/// The field of a line that names an owner: empty for root, else with its tab.
type Field = Arc<[u8]>;

/// The fields that were asked for so far.
#[derive(Debug, Default)]
pub(crate) struct Owners(Mutex<HashMap<(Kind, u32), Field>>);

/// The fields of the last owner and group: most entries have those of the one before.
#[derive(Debug, Default)]
pub(crate) struct LastOwners {
    /// User and group.
    ids: Option<(u32, u32)>,
    fields: Vec<u8>,
}

impl Owners {
    pub(crate) fn field(&self, kind: Kind, id: u32, look_up: &LookUp<'_>) -> Result<Field, Errno> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(field) = known.get(&(kind, id)) {
            return Ok(Arc::clone(field));
        }
        let field = spell(kind, &look_up(kind, id)?);
        known.insert((kind, id), Arc::clone(&field));
        Ok(field)
    }
}

impl LastOwners {
    /// The fields of a user and a group.
    pub(crate) fn fields(
        &mut self,
        (user, group): (u32, u32),
        owners: &Owners,
        look_up: &LookUp<'_>,
    ) -> Result<&[u8], Errno> {
        if self.ids != Some((user, group)) {
            self.ids = None;
            self.fields.clear();
            for (kind, id) in [(Kind::User, user), (Kind::Group, group)] {
                let field = owners.field(kind, id, look_up)?;
                self.fields.extend_from_slice(&field);
            }
            self.ids = Some((user, group));
        }
        Ok(&self.fields)
    }
}

fn spell(kind: Kind, name: &[u8]) -> Field {
    let mut field = Vec::new();
    if name != ROOT_OWNER {
        field.extend_from_slice(match kind {
            Kind::User => b"\tu",
            Kind::Group => b"\tg",
        });
        put_escaped(&mut field, name);
    }
    field.into()
}
