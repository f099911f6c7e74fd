//! What goes to somebody who asks for a commit: all that it holds, or what another does not have.
//!
//! Whole objects go as they lie in their packs.  What took the place of something that the other
//! side has goes as a delta against that, if it is shorter so.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::git::deflate::Deflater;
use crate::git::deltify::deltify;
use crate::git::object::{Kind, Made, Object};
use crate::git::oid::{OID_BYTES, Oid};
use crate::git::read::Packed;
use crate::git::tree::decode_tree;
use crate::git::write::{PackOut, Put};

/// Where the objects are.
pub trait Store {
    /// An object, if it is here.
    fn find(&mut self, oid: &Oid) -> Result<Option<Arc<Object>>>;

    /// How it lies in its pack, if it is here.
    fn packed(&mut self, oid: &Oid) -> Result<Option<Packed>>;

    /// Whether it came with the commit that is sent, and not before; a wrong "yes" sends too much.
    fn is_fresh(&mut self, oid: &Oid) -> Result<bool>;
}

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Commits as git has them, and the trees that they name; oldest first.
    pub commits: &'a [(&'a [u8], Oid)],
    /// A tree of which the other side has everything.
    pub known: Option<Oid>,
}

/// Hand the pack to `put`, piece by piece.
pub fn send(
    wanted: Wanted<'_>,
    store: &mut dyn Store,
    budget: &Budget<'_>,
    put: &mut Put<'_>,
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
        out.record(Made::Whole(Kind::Commit), commit.len(), &data)?;
    }
    let mut sender = Sender {
        store,
        deflater,
        members: items.iter().map(|item| item.oid).collect(),
        sent: HashSet::new(),
    };
    for item in items {
        budget.check()?;
        sender.put(&item, &mut out)?;
    }
    out.end()
}

/// An object that has to be sent.
struct Item {
    oid: Oid,
    /// What the other side has in its place.
    base: Option<Oid>,
}

/// Finds out which objects have to be sent.
struct Selection {
    known: Option<Oid>,
    /// Everything below `known`, once somebody had to know.
    complete: Option<HashSet<Oid>>,
    /// What was found so far.
    seen: HashSet<Oid>,
}

impl Selection {
    fn new(known: Option<Oid>) -> Self {
        Self {
            known,
            complete: None,
            seen: HashSet::new(),
        }
    }

    /// All below `tree`, itself included, that is not below `known`; what is at the same place in
    /// both is not looked into.
    fn select(
        &mut self,
        tree: Oid,
        store: &mut dyn Store,
        budget: &Budget<'_>,
    ) -> Result<Vec<Item>> {
        let base = self.known;
        if base == Some(tree) || !self.seen.insert(tree) {
            return Ok(Vec::new());
        }
        let mut found = vec![Item { oid: tree, base }];
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
                if base == Some(oid) || self.seen.contains(&oid) {
                    continue;
                }
                // A blob that took another's place is next to never elsewhere, and is small.
                if (item.is_tree || base.is_none()) && self.has(&oid, store, budget)? {
                    continue;
                }
                self.seen.insert(oid);
                found.push(Item { oid, base });
                if item.is_tree {
                    pending.push((oid, base));
                }
            }
        }
        Ok(found)
    }

    /// Whether the other side has an object, wherever in its tree.
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

fn read_tree(oid: &Oid, store: &mut dyn Store) -> Result<Arc<Object>> {
    let found = store.find(oid)?.filter(|found| found.kind == Kind::Tree);
    found.ok_or_else(|| missing(oid))
}

/// Puts objects into a pack, each the shortest way that is quickly found.
struct Sender<'a> {
    store: &'a mut dyn Store,
    deflater: Deflater,
    /// What the pack will hold, and what it holds by now.
    members: HashSet<Oid>,
    sent: HashSet<Oid>,
}

impl Sender<'_> {
    fn put(&mut self, item: &Item, out: &mut PackOut<'_, '_>) -> Result<()> {
        let oid = &item.oid;
        let packed = self.store.packed(oid)?.ok_or_else(|| missing(oid))?;
        let mut data = Vec::new();
        // What the pack itself holds is no base that the other side can be sure to have.
        if let Some(base) = item.base.filter(|base| !self.members.contains(base)) {
            let old = self.read(&base)?;
            let delta = deltify(&old.content, &self.read(oid)?.content);
            self.deflater.deflate(&delta, &mut data)?;
            if data.len().saturating_add(OID_BYTES) < packed.data.len() {
                self.sent.insert(*oid);
                return out.record(Made::From(base), delta.len(), &data);
            }
        }
        let kept = match packed.made {
            Made::Whole(_) => true,
            // Only what stands before it: so no two are made from each other.
            Made::From(base) => self.sent.contains(&base),
        };
        self.sent.insert(*oid);
        if kept {
            return out.record(packed.made, packed.size, &packed.data);
        }
        let object = self.read(oid)?;
        self.deflater.deflate(&object.content, &mut data)?;
        out.record(Made::Whole(object.kind), object.content.len(), &data)
    }

    fn read(&mut self, oid: &Oid) -> Result<Arc<Object>> {
        self.store.find(oid)?.ok_or_else(|| missing(oid))
    }
}

fn missing(oid: &Oid) -> Error {
    Error::new("an object that is in no pack").within(oid)
}
