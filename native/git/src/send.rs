//! Makes the pack for a requested commit: all its objects, or those that the other side lacks.
//!
//! Whole objects are copied as they are packed.  An object that replaced one of the other side is
//! sent as a delta against it if that is shorter.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use crate::budget::Budget;
use crate::deflate::Deflater;
use crate::deltify::deltify;
use crate::error::{Error, Result};
use crate::object::{Kind, Object, PackedForm};
use crate::oid::{OID_BYTES, Oid};
use crate::read::Packed;
use crate::tree::decode_tree;
use crate::write::{PackOut, PackSink};

/// A store of objects.
pub trait Store {
    /// Return an object; `None` if it is missing.
    fn find(&mut self, oid: &Oid) -> Result<Option<Arc<Object>>>;

    /// Return an object in its packed form; `None` if it is missing.
    fn packed(&mut self, oid: &Oid) -> Result<Option<Packed>>;

    /// Return true if the object is new in the sent commit; a wrong "yes" sends too much.
    fn is_fresh(&mut self, oid: &Oid) -> Result<bool>;

    /// Return true if a tree was never fetched, and is not sent.
    fn is_absent(&mut self, oid: &Oid) -> Result<bool>;
}

/// The commits to send.
#[derive(Debug, Clone, Copy)]
pub struct SendRequest<'a> {
    /// Commits in git's encoding, with their trees; oldest first.
    pub commits: &'a [(&'a [u8], Oid)],
    /// A tree that the other side has completely.
    pub known: Option<Oid>,
}

/// Make a pack of the commits, and of what the other side lacks of their trees; calls `put` with
/// its parts, in order.  A delta may be against an object below `known`, which the pack then lacks.
///
/// Fails if an object is missing or a tree is malformed, if `budget` has to end, and if `put`
/// fails.
pub fn send(
    wanted: SendRequest<'_>,
    store: &mut dyn Store,
    budget: &Budget<'_>,
    put: &mut PackSink<'_>,
) -> Result<()> {
    let mut selection = Selection::new(wanted.known);
    let mut items = Vec::new();
    for (_, tree) in wanted.commits {
        items.append(&mut selection.select(*tree, store, budget)?);
    }
    let count = items.len().saturating_add(wanted.commits.len());
    let count = u32::try_from(count).map_err(|_| Error::new("too many objects for a pack"))?;
    let mut out = PackOut::begin(count, put);
    let mut deflater = Deflater::default();
    let mut data = Vec::new();
    for (commit, _) in wanted.commits {
        deflater.deflate(commit, &mut data)?;
        out.record(PackedForm::Whole(Kind::Commit), commit.len(), &data)?;
    }
    let mut sender = Sender {
        store,
        deflater,
        members: items.iter().map(|item| item.oid).collect(),
        sent: HashSet::new(),
    };
    for item in items {
        budget.check()?;
        sender.put_object(&item, &mut out)?;
    }
    out.end()
}

/// An object to send.
struct Item {
    oid: Oid,
    /// The object that it replaces on the other side.
    base: Option<Oid>,
}

/// The selection of objects to send.
struct Selection {
    known: Option<Oid>,
    /// Everything below `known`, once it was needed.
    complete: Option<HashSet<Oid>>,
    /// The objects that were selected.
    visited: HashSet<Oid>,
}

impl Selection {
    fn new(known: Option<Oid>) -> Self {
        Self {
            known,
            complete: None,
            visited: HashSet::new(),
        }
    }

    /// Select `tree` and everything below it that no earlier call selected and the other side
    /// lacks; empty if `tree` is `known` or was selected.
    ///
    /// A fresh object, and a blob that replaced another, is selected even if `known` has it
    /// elsewhere.  Subtrees that are equal at the same place are not read.
    fn select(
        &mut self,
        tree: Oid,
        store: &mut dyn Store,
        budget: &Budget<'_>,
    ) -> Result<Vec<Item>> {
        let base = self.known;
        if base == Some(tree) || !self.visited.insert(tree) {
            return Ok(Vec::new());
        }
        let mut items = vec![Item { oid: tree, base }];
        let mut pending = vec![(tree, base)];
        while let Some((tree, base)) = pending.pop() {
            budget.check()?;
            let before = base.map(|base| read_tree(&base, store)).transpose()?;
            let before = before.as_ref().map_or(&[][..], |object| &object.content);
            let before: BTreeMap<_, _> = decode_tree(before)?
                .into_iter()
                .map(|item| ((item.name, item.is_tree), item.oid))
                .collect();
            for item in decode_tree(&read_tree(&tree, store)?.content)? {
                let base = before.get(&(item.name, item.is_tree)).copied();
                let oid = item.oid;
                if base == Some(oid) || self.visited.contains(&oid) {
                    continue;
                }
                if item.is_tree && store.is_absent(&oid)? {
                    continue;
                }
                // A blob that replaced another hardly ever exists elsewhere, and is small.
                if (item.is_tree || base.is_none()) && self.has(&oid, store, budget)? {
                    continue;
                }
                self.visited.insert(oid);
                items.push(Item { oid, base });
                if item.is_tree {
                    pending.push((oid, base));
                }
            }
        }
        Ok(items)
    }

    /// Return true if the other side has an object anywhere in its tree, which is read once; false
    /// for a fresh object, without a look.
    fn has(&mut self, oid: &Oid, store: &mut dyn Store, budget: &Budget<'_>) -> Result<bool> {
        let Some(known) = self.known else {
            return Ok(false);
        };
        if store.is_fresh(oid)? {
            return Ok(false);
        }
        if self.complete.is_none() {
            let all = Self::new(None).select(known, store, budget)?;
            self.complete = Some(all.into_iter().map(|item| item.oid).collect());
        }
        Ok(self.complete.as_ref().is_some_and(|all| all.contains(oid)))
    }
}

/// Read a tree; an error if it is missing or not a tree.
fn read_tree(oid: &Oid, store: &mut dyn Store) -> Result<Arc<Object>> {
    let object = store.find(oid)?.filter(|object| object.kind == Kind::Tree);
    object.ok_or_else(|| missing(oid))
}

/// A writer of objects into a pack, each in the shortest form that is quickly found.
struct Sender<'a> {
    store: &'a mut dyn Store,
    deflater: Deflater,
    /// The objects that the pack will have, and those that it has so far.
    members: HashSet<Oid>,
    sent: HashSet<Oid>,
}

impl Sender<'_> {
    /// Write an object: as a delta against its base, unless the pack has that too, if this is shorter, else in its
    /// packed form if that needs no object that the other side may lack, else whole.
    fn put_object(&mut self, item: &Item, out: &mut PackOut<'_, '_>) -> Result<()> {
        let oid = &item.oid;
        let packed = self.store.packed(oid)?.ok_or_else(|| missing(oid))?;
        let mut data = Vec::new();
        // Objects of the pack itself are not bases: the other side may lack them.
        if let Some(base) = item.base.filter(|base| !self.members.contains(base)) {
            let old = self.read(&base)?;
            let delta = deltify(&old.content, &self.read(oid)?.content);
            self.deflater.deflate(&delta, &mut data)?;
            if data.len().saturating_add(OID_BYTES) < packed.data.len() {
                self.sent.insert(*oid);
                return out.record(PackedForm::From(base), delta.len(), &data);
            }
        }
        let is_kept = match packed.form {
            PackedForm::Whole(_) => true,
            // Only earlier objects: so no two are based on each other.
            PackedForm::From(base) => self.sent.contains(&base),
        };
        self.sent.insert(*oid);
        if is_kept {
            return out.record(packed.form, packed.size, &packed.data);
        }
        let object = self.read(oid)?;
        self.deflater.deflate(&object.content, &mut data)?;
        out.record(PackedForm::Whole(object.kind), object.content.len(), &data)
    }

    fn read(&mut self, oid: &Oid) -> Result<Arc<Object>> {
        self.store.find(oid)?.ok_or_else(|| missing(oid))
    }
}

fn missing(oid: &Oid) -> Error {
    Error::new("an object that is in no pack").within(oid)
}
