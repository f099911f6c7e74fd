//! The packs of a repository as what is sent comes from them.

use std::sync::Arc;

use huai_format::budget::Budget;
use huai_format::error::Result;
use huai_format::git::object::Object;
use huai_format::git::oid::Oid;
use huai_format::git::read::Packed;
use huai_format::git::send::{Store, Wanted, send};
use huai_format::git::write::Put;

use super::read::Packs;

/// Hand the pack of what is wanted to `put`, piece by piece.
///
/// `newest` is the path of a pack without its suffix.  If it has the wanted tree, it holds nothing
/// that was there before that.
pub fn send_from(
    packs: &mut Packs,
    wanted: Wanted<'_>,
    newest: Option<&[u8]>,
    budget: &Budget<'_>,
    put: &mut Put<'_>,
) -> Result<()> {
    packs.locate(&wanted.tree)?;
    let fresh = match newest {
        Some(path) if packs.is_in(path, &wanted.tree)? => Some(path),
        _ => None,
    };
    send(wanted, &mut Sending { packs, fresh }, budget, put)
}

struct Sending<'a> {
    packs: &'a mut Packs,
    fresh: Option<&'a [u8]>,
}

impl Store for Sending<'_> {
    fn find(&mut self, oid: &Oid) -> Result<Option<Arc<Object>>> {
        self.packs.find(oid)
    }

    fn packed(&mut self, oid: &Oid) -> Result<Option<Packed>> {
        self.packs.packed(oid)
    }

    fn is_fresh(&mut self, oid: &Oid) -> Result<bool> {
        self.fresh
            .map_or(Ok(false), |fresh| self.packs.is_in(fresh, oid))
    }
}
