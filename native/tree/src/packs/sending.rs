//! Sends objects from the packs of a repository.

use std::sync::Arc;

use huai_git::budget::Budget;
use huai_git::error::Result;
use huai_git::object::Object;
use huai_git::oid::Oid;
use huai_git::read::Packed;
use huai_git::send::{SendRequest, Store, send};
use huai_git::write::PackSink;

use super::read::Packs;

/// Make the pack for a request, calling `put` for each part.
///
/// If one commit is requested, the pack that has its tree is taken for the pack of that commit, unless it
/// has the known tree too.
pub fn send_from(
    packs: &mut Packs,
    wanted: SendRequest<'_>,
    budget: &Budget<'_>,
    put: &mut PackSink<'_>,
) -> Result<()> {
    let fresh = match (wanted.commits, wanted.known) {
        ([(_, tree)], Some(known)) => packs.pack_without(tree, &known)?,
        _ => None,
    };
    send(wanted, &mut Sending { packs, fresh }, budget, put)
}

struct Sending<'a> {
    packs: &'a mut Packs,
    /// The path of the pack that came with the commit.
    fresh: Option<Vec<u8>>,
}

impl Store for Sending<'_> {
    fn find(&mut self, oid: &Oid) -> Result<Option<Arc<Object>>> {
        self.packs.find(oid)
    }

    fn packed(&mut self, oid: &Oid) -> Result<Option<Packed>> {
        self.packs.packed(oid)
    }

    /// Return true for an absent directory, and note it.
    fn is_absent(&mut self, oid: &Oid) -> Result<bool> {
        let is_absent = self.packs.is_absent(oid)?;
        if is_absent {
            self.packs.left_out.insert(*oid);
        }
        Ok(is_absent)
    }

    /// Return true if the fresh pack has an object; false without one.
    fn is_fresh(&mut self, oid: &Oid) -> Result<bool> {
        let fresh = self.fresh.as_deref();
        fresh.map_or(Ok(false), |fresh| self.packs.is_in(fresh, oid))
    }
}
