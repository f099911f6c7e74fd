//! Computes the id of every object in a pack; each delta is applied once.
//!
//! Walks from bases to their deltas, so that the time is proportional to the size of the
//! pack, and memory holds only the bases on the way to the current object.  Rule: work is counted
//! before it is done.

use std::collections::BTreeMap;

use crate::budget::Budget;
use crate::delta::{Delta, STEP_WORK};
use crate::error::{Error, Result};
use crate::index::IndexEntry;
use crate::limits::CHAIN_DEPTH;
use crate::object::{Kind, Object};
use crate::oid::Oid;
use crate::records::{Base, REPLY, Record, Records, record_place};
use crate::window::Source;

/// The bytes of an object in memory besides its content.
const OBJECT_OVERHEAD: u64 = 200;

/// A repository, some of whose objects may be missing.
pub trait LocalObjects {
    /// Return an object by its id, `None` if it is missing; may be called for the same id again.
    fn find(&mut self, oid: &Oid) -> Result<Option<Object>>;

    /// Return true if an object is present, whatever its kind.
    fn has(&mut self, oid: &Oid) -> Result<bool> {
        Ok(self.find(oid)?.is_some())
    }
}

/// A received pack, and the repository that does not have it yet.
pub struct WithPack<'a> {
    /// The pack; of its objects only trees and commits are found.
    pub pack: &'a Resolved,
    /// The repository.
    pub objects: &'a mut dyn LocalObjects,
}

impl LocalObjects for WithPack<'_> {
    fn find(&mut self, oid: &Oid) -> Result<Option<Object>> {
        match self.pack.find(oid) {
            Some(object) => Ok(Some(object.clone())),
            None => self.objects.find(oid),
        }
    }

    fn has(&mut self, oid: &Oid) -> Result<bool> {
        Ok(self.pack.contains(oid) || self.objects.has(oid)?)
    }
}

/// The limits of memory, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// Bytes of bases, and of deltas, besides the current ones; beyond, they are computed again.
    pub held: u64,
    /// Bytes of trees and commits, which are kept; beyond, the pack is refused.
    pub naming: u64,
}

/// A pack with the id of every object.
#[derive(Debug, Default)]
pub struct Resolved {
    records: Vec<Record>,
    ids: Vec<Oid>,
    /// The numbers of the records, sorted by id.
    order: Vec<usize>,
    naming: Vec<Option<Object>>,
    bases: Vec<Oid>,
}

impl Resolved {
    /// Return the bases outside of the pack, sorted.
    pub fn bases(&self) -> &[Oid] {
        &self.bases
    }

    /// Return true if the pack is empty.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Return true if an object is in the pack.
    pub fn contains(&self, oid: &Oid) -> bool {
        self.number(oid).is_some()
    }

    /// Return a tree or a commit of the pack; `None` for a blob, and for an object that it lacks.
    pub fn find(&self, oid: &Oid) -> Option<&Object> {
        self.naming.get(self.number(oid)?)?.as_ref()
    }

    /// Return the index entry of each object, sorted by id.
    pub fn index_entries(&self) -> impl Iterator<Item = IndexEntry> + '_ {
        self.order.iter().filter_map(|number| {
            let record = self.records.get(*number)?;
            Some(IndexEntry {
                oid: *self.ids.get(*number)?,
                offset: record.offset,
                crc: record.crc,
            })
        })
    }

    /// Return the number of an object; `None` if the pack lacks it.
    fn number(&self, oid: &Oid) -> Option<usize> {
        let position = self
            .order
            .binary_search_by_key(&Some(oid), |number| self.ids.get(*number))
            .ok()?;
        self.order.get(position).copied()
    }
}

/// Compute the ids of all objects in the pack that `source` holds; `bases` has the bases that the
/// pack lacks.
///
/// Fails with `Missing` for a delta without its base.  Also fails for a pack that is damaged, has
/// an object twice, or exceeds `room.naming`, `budget` or a limit.
pub fn resolve<S: Source>(
    source: S,
    bases: &mut dyn LocalObjects,
    room: Room,
    budget: &mut Budget<'_>,
) -> Result<Resolved> {
    let records = Records::open(source, budget)?;
    let mut resolver = Resolver {
        records,
        bases,
        room,
        budget,
        ids: Vec::new(),
        naming: Vec::new(),
        deltas: Deltas::default(),
        waiting: Waiting::default(),
        used: Vec::new(),
        held: 0,
    };
    resolver.scan()?;
    resolver.resolve()?;
    resolver.finish()
}

/// Deltas that wait for their base, as linked lists: the first of each, and the next of each.
#[derive(Default)]
struct Waiting {
    on_record: Vec<Option<usize>>,
    on_name: BTreeMap<Oid, usize>,
    next: Vec<Option<usize>>,
}

impl Waiting {
    /// Add the record with the next number to the list of its base.
    fn add(&mut self, number: usize, base: &Base) {
        let next = match base {
            Base::Whole(_) => None,
            Base::Record(base) => self
                .on_record
                .get_mut(*base)
                .and_then(|first| first.replace(number)),
            Base::Named(oid) => self.on_name.insert(*oid, number),
        };
        self.on_record.push(None);
        self.next.push(next);
    }

    /// Return true if deltas against an object wait: by its id, or by the number of its record.
    fn has(&self, oid: &Oid, number: usize) -> bool {
        self.on_name.contains_key(oid) || self.on_record.get(number).is_some_and(Option::is_some)
    }

    /// Remove and return the two lists of deltas against an object: by its id, and by the `number` of its record.
    /// `None` is an empty list.
    fn remove(&mut self, oid: &Oid, number: Option<usize>) -> [Option<usize>; 2] {
        let on_record = number
            .and_then(|number| self.on_record.get_mut(number))
            .and_then(Option::take);
        [self.on_name.remove(oid), on_record]
    }

    /// Return the first delta of two lists, and remove it; `None` if both are empty.
    fn pop(&self, lists: &mut [Option<usize>; 2]) -> Option<usize> {
        let list = lists.iter_mut().find(|list| list.is_some())?;
        let number = list.take()?;
        *list = self.next.get(number).copied().flatten();
        Some(number)
    }

    /// Return any delta whose base was not found; `None` without one.
    fn unresolved(&self) -> Option<usize> {
        let on_record = self.on_record.iter().find_map(|first| *first);
        on_record.or_else(|| self.on_name.values().next().copied())
    }
}

/// The bytes of deltas, as long as there is room.
#[derive(Default)]
struct Deltas {
    bytes: Vec<u8>,
    starts: Vec<Option<usize>>,
}

impl Deltas {
    /// Add the next record, `None` for a whole object; a delta beyond `room` bytes in all is not kept.
    fn add(&mut self, delta: Option<&[u8]>, room: u64) {
        let start = self.bytes.len();
        let fitting = delta.filter(|delta| {
            let size = start.saturating_add(delta.len());
            size as u64 <= room && self.bytes.try_reserve(delta.len()).is_ok()
        });
        self.bytes.extend_from_slice(fitting.unwrap_or_default());
        self.starts.push(fitting.map(|_| start));
    }

    /// Return the delta of a record, which has `size` bytes; `None` if it was not kept.
    fn get(&self, number: usize, size: usize) -> Option<&[u8]> {
        let start = self.starts.get(number).copied().flatten()?;
        self.bytes.get(start..)?.get(..size)
    }
}

/// The origin of an object on the stack.
enum Origin {
    Record(usize),
    /// An object of the repository.
    Local(Oid),
}

/// An object on the way from a whole object to the current one.
struct Step {
    origin: Origin,
    /// `None` if it was dropped.
    content: Option<Vec<u8>>,
    waiting: [Option<usize>; 2],
}

impl Step {
    fn held_bytes(&self) -> u64 {
        self.content
            .as_ref()
            .map_or(0, |content| content.len() as u64)
    }

    /// Drop the content; returns its bytes.
    fn forget(&mut self) -> u64 {
        self.content
            .take()
            .map_or(0, |content| content.len() as u64)
    }
}

struct Resolver<'a, 'b, S> {
    records: Records<S>,
    bases: &'a mut dyn LocalObjects,
    room: Room,
    budget: &'a mut Budget<'b>,
    /// The ids by the number of the record; `None` until the base is known.
    ids: Vec<Option<Oid>>,
    naming: Vec<Option<Object>>,
    deltas: Deltas,
    waiting: Waiting,
    /// The bases outside of the pack that were used.
    used: Vec<Oid>,
    held: u64,
}

impl<S: Source> Resolver<'_, '_, S> {
    /// Read all records; stores the ids of whole objects, and all deltas under their bases.
    fn scan(&mut self) -> Result<()> {
        let mut content = Vec::new();
        while let Some(record) = self.records.next(self.budget, &mut content)? {
            let number = self.ids.len();
            self.ids.push(None);
            self.naming.push(None);
            self.waiting.add(number, &record.base);
            if let Base::Whole(kind) = record.base {
                self.deltas.add(None, 0);
                self.note(number, kind, &content)?;
            } else {
                self.deltas.add(Some(&content), self.room.held);
            }
        }
        Ok(())
    }

    /// Resolve the deltas below whole objects of the pack, then those below local objects.
    fn resolve(&mut self) -> Result<()> {
        for number in 0..self.ids.len() {
            let Some(oid) = self.ids.get(number).copied().flatten() else {
                continue;
            };
            let Some(record) = self.records.records().get(number).copied() else {
                continue;
            };
            let Base::Whole(kind) = record.base else {
                continue;
            };
            if self.waiting.has(&oid, number) {
                let mut content = Vec::new();
                self.records.inflate(&record, self.budget, &mut content)?;
                self.descend(&oid, Origin::Record(number), Object { kind, content })?;
            }
        }
        let bases: Vec<Oid> = self.waiting.on_name.keys().copied().collect();
        for oid in bases {
            // Skip a base that an earlier round resolved.
            if !self.waiting.on_name.contains_key(&oid) {
                continue;
            }
            if let Some(here) = self.bases.find(&oid)? {
                self.used.push(oid);
                self.descend(&oid, Origin::Local(oid), here)?;
            }
        }
        Ok(())
    }

    /// Sort the objects; refuses a delta without its base or against a later object, and an object
    /// that is there twice.
    fn finish(self) -> Result<Resolved> {
        let records = self.records.records();
        if let Some(left) = self.waiting.unresolved().and_then(|left| records.get(left)) {
            let place = record_place(left.offset);
            return Err(Error::missing("a delta against a missing object", place));
        }
        let ids: Vec<Oid> = self.ids.into_iter().flatten().collect();
        let mut order: Vec<usize> = (0..ids.len()).collect();
        order.sort_unstable_by_key(|number| ids.get(*number));
        let mut before = None;
        for oid in order.iter().filter_map(|number| ids.get(*number)) {
            if before == Some(oid) {
                return Err(Error::new("an object that is in the pack twice").within(oid));
            }
            before = Some(oid);
        }
        let pack = Resolved {
            records: records.to_vec(),
            ids,
            order,
            naming: self.naming,
            bases: self.used,
        };
        if pack.bases.iter().any(|oid| pack.contains(oid)) {
            return Err(Error::new("a delta against a later object").within(REPLY));
        }
        Ok(pack)
    }

    /// Store the id of a record's object, and its content if it names others; returns the id.  Fails if such contents
    /// exceed `room.naming`, or the content was crafted to collide.
    fn note(&mut self, number: usize, kind: Kind, content: &[u8]) -> Result<Oid> {
        let oid = Oid::of(kind, content).map_err(|error| error.within(REPLY))?;
        if kind.names_others() {
            let size = (content.len() as u64).saturating_add(OBJECT_OVERHEAD);
            self.room.naming = self.room.naming.checked_sub(size).ok_or_else(|| {
                Error::new("trees of more bytes than the limit in one pack").within(REPLY)
            })?;
            if let Some(record_place) = self.naming.get_mut(number) {
                let content = content.to_vec();
                *record_place = Some(Object { kind, content });
            }
        }
        if let Some(record_place) = self.ids.get_mut(number) {
            *record_place = Some(oid);
        }
        Ok(oid)
    }

    /// Resolve everything that is based on an object, directly or not.
    fn descend(&mut self, oid: &Oid, origin: Origin, object: Object) -> Result<()> {
        let Object { kind, content } = object;
        let number = match origin {
            Origin::Record(number) => Some(number),
            Origin::Local(_) => None,
        };
        self.held = content.len() as u64;
        let mut stack = vec![Step {
            origin,
            content: Some(content),
            waiting: self.waiting.remove(oid, number),
        }];
        while let Some(top) = stack.last_mut() {
            let Some(number) = self.waiting.pop(&mut top.waiting) else {
                self.held = self.held.saturating_sub(top.held_bytes());
                stack.pop();
                continue;
            };
            let base = self.content(&mut stack)?;
            let content = self.make(&base, number)?;
            let oid = self.note(number, kind, &content)?;
            self.give_back(&mut stack, base);
            let waiting = self.waiting.remove(&oid, Some(number));
            if waiting != [None, None] {
                self.held = self.held.saturating_add(content.len() as u64);
                stack.push(Step {
                    origin: Origin::Record(number),
                    content: Some(content),
                    waiting,
                });
                self.limit(&mut stack)?;
            }
        }
        Ok(())
    }

    /// Take the newest base from the stack; recomputed if it was dropped.
    fn content(&mut self, stack: &mut [Step]) -> Result<Vec<u8>> {
        if let Some(content) = stack.last_mut().and_then(|top| top.content.take()) {
            return Ok(content);
        }
        let mut content = Vec::new();
        for step in stack {
            content = match &step.origin {
                Origin::Local(oid) => self.read_again(oid)?,
                Origin::Record(number) => self.make(&content, *number)?,
            };
        }
        self.held = self.held.saturating_add(content.len() as u64);
        Ok(content)
    }

    /// Return the newest base to the stack if it is needed again; otherwise drop it, so that a long
    /// chain takes no more memory than a short one.
    fn give_back(&mut self, stack: &mut [Step], base: Vec<u8>) {
        match stack.last_mut() {
            Some(top) if top.waiting != [None, None] => top.content = Some(base),
            _ => self.held = self.held.saturating_sub(base.len() as u64),
        }
    }

    /// Refuse endless chains; drop the bases that are needed last, if there are too many.
    fn limit(&mut self, stack: &mut [Step]) -> Result<()> {
        if stack.len() > CHAIN_DEPTH {
            let rule = format!("a chain of more than {CHAIN_DEPTH} deltas");
            return Err(Error::new(rule).within(REPLY));
        }
        let Some((_, below)) = stack.split_last_mut() else {
            return Ok(());
        };
        for step in below {
            if self.held <= self.room.held {
                break;
            }
            self.held = self.held.saturating_sub(step.forget());
        }
        Ok(())
    }

    /// Read an object outside of the pack again.
    fn read_again(&mut self, oid: &Oid) -> Result<Vec<u8>> {
        let object = self
            .bases
            .find(oid)?
            .ok_or_else(|| Error::new("an object that can no longer be read").within(oid))?;
        self.spend(object.content.len() as u64)?;
        Ok(object.content)
    }

    /// Return the object of the record `number`; if that is a delta, applied to `base`.
    fn make(&mut self, base: &[u8], number: usize) -> Result<Vec<u8>> {
        let record = self.records.records().get(number).copied();
        let record = record.ok_or_else(|| Error::bug("a record that was not read"))?;
        let mut inflated = Vec::new();
        let delta_bytes = self.deltas.get(number, record.size);
        if delta_bytes.is_none() {
            self.records.inflate(&record, self.budget, &mut inflated)?;
        }
        if matches!(record.base, Base::Whole(_)) {
            return Ok(inflated);
        }
        let delta = delta_bytes.unwrap_or(&inflated);
        let within = |error: Error| error.within(record_place(record.offset));
        let reply = |error: Error| error.within(REPLY);
        let work = (delta.len() as u64).saturating_mul(STEP_WORK);
        self.budget.spend(work).map_err(reply)?;
        let delta = Delta::parse(delta).map_err(within)?;
        self.budget.spend(delta.size() as u64).map_err(reply)?;
        let mut result = Vec::new();
        delta.apply(base, &mut result).map_err(within)?;
        Ok(result)
    }

    fn spend(&mut self, work: u64) -> Result<()> {
        self.budget.spend(work).map_err(|error| error.within(REPLY))
    }
}
