//! Looks up the names of users and groups, each once per scan.
//!
//! The caller provides the lookup: the C library does it, and Python calls it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use huai_format::entries::ROOT_OWNER;
use huai_format::escape::put_escaped;
use huai_sys::error::Errno;

/// The kind of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OwnerKind {
    /// A user.
    User,
    /// A group.
    Group,
}

/// A lookup of the name of an id, as metadata spell it; an error if the lookup fails.
pub type LookUp<'a> = dyn Fn(OwnerKind, u32) -> Result<Vec<u8>, Errno> + Sync + 'a;

/// The field of an owner in a line: empty for root, otherwise with its tab.
type Field = Arc<[u8]>;

/// The fields that were looked up so far.
#[derive(Debug, Default)]
pub(crate) struct Owners(Mutex<HashMap<(OwnerKind, u32), Field>>);

/// The fields of the last owner and group: most entries have those of the previous one.
#[derive(Debug, Default)]
pub(crate) struct LastOwners {
    /// The ids of user and group.
    ids: Option<(u32, u32)>,
    fields: Vec<u8>,
}

impl Owners {
    /// Return the field of an owner in a line; each id is looked up once, and again after an error.
    pub(crate) fn field(
        &self,
        kind: OwnerKind,
        id: u32,
        look_up: &LookUp<'_>,
    ) -> Result<Field, Errno> {
        let mut fields = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(field) = fields.get(&(kind, id)) {
            return Ok(Arc::clone(field));
        }
        let field = spell(kind, &look_up(kind, id)?);
        fields.insert((kind, id), Arc::clone(&field));
        Ok(field)
    }
}

impl LastOwners {
    /// Return the fields of a user and a group in a line; root has none.
    pub(crate) fn fields(
        &mut self,
        (user, group): (u32, u32),
        owners: &Owners,
        look_up: &LookUp<'_>,
    ) -> Result<&[u8], Errno> {
        if self.ids != Some((user, group)) {
            self.ids = None;
            self.fields.clear();
            for (kind, id) in [(OwnerKind::User, user), (OwnerKind::Group, group)] {
                let field = owners.field(kind, id, look_up)?;
                self.fields.extend_from_slice(&field);
            }
            self.ids = Some((user, group));
        }
        Ok(&self.fields)
    }
}

/// Return the field of an owner in a line, with its tab; empty for root.
fn spell(kind: OwnerKind, name: &[u8]) -> Field {
    let mut field = Vec::new();
    if name != ROOT_OWNER {
        field.extend_from_slice(match kind {
            OwnerKind::User => b"\tu",
            OwnerKind::Group => b"\tg",
        });
        put_escaped(&mut field, name);
    }
    field.into()
}
