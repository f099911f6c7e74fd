//! Finds out the id of every object in a pack: deltas are applied, each of them once.
//!
//! Goes from bases to what is made from them, so that the time is proportional to what is in the
//! pack, and needs memory only for the bases on the way to the object at work.  Rule: whatever is
//! made is counted as work first.

use std::collections::BTreeMap;

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::git::delta::{Delta, STEP_WORK};
use crate::git::index::Place;
use crate::git::object::{Kind, Object};
use crate::git::oid::Oid;
use crate::git::records::{Base, REPLY, Record, Records, place};
use crate::git::window::Source;
use crate::limits::CHAIN_DEPTH;

/// What an object in memory takes beside its content.
const OBJECT_OVERHEAD: u64 = 200;

/// The objects that deltas may be based on without being in the pack.
pub trait Bases {
    /// An object by its id, if it is here; the same one may be asked for again.
    fn find(&mut self, oid: &Oid) -> Result<Option<Object>>;
}

/// What is held in memory at most.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// Bytes of bases and of deltas each, not counting one at work; beyond, they are made again.
    pub held: u64,
    /// Bytes of trees and commits, which are kept; beyond, the pack is refused.
    pub naming: u64,
}

/// A pack of which every object is known.
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
    /// The objects outside of the pack that its deltas are made from, sorted.
    pub fn bases(&self) -> &[Oid] {
        &self.bases
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Whether an object is in the pack.
    pub fn contains(&self, oid: &Oid) -> bool {
        self.number(oid).is_some()
    }

    /// A tree or a commit of the pack.
    pub fn find(&self, oid: &Oid) -> Option<&Object> {
        self.naming.get(self.number(oid)?)?.as_ref()
    }

    /// Where each object stands, sorted by id.
    pub fn places(&self) -> impl Iterator<Item = Place> + '_ {
        self.order.iter().filter_map(|number| {
            let record = self.records.get(*number)?;
            Some(Place {
                oid: *self.ids.get(*number)?,
                offset: record.offset,
                crc: record.crc,
            })
        })
    }

    fn number(&self, oid: &Oid) -> Option<usize> {
        let found = self
            .order
            .binary_search_by_key(&Some(oid), |number| self.ids.get(*number))
            .ok()?;
        self.order.get(found).copied()
    }
}

/// What a pack turned out to be.
#[derive(Debug)]
pub enum Outcome {
    /// Everything in it is known.
    Whole(Resolved),
    /// The record at this place is a delta against an object that is not here.
    Missing(u64),
}

/// Resolve the pack that `source` holds.
pub fn resolve<S: Source>(
    source: S,
    bases: &mut dyn Bases,
    room: Room,
    budget: &mut Budget<'_>,
) -> Result<Outcome> {
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

/// The deltas that wait for their base, as lists: the first of each, and the next of each.
#[derive(Default)]
struct Waiting {
    on_record: Vec<Option<usize>>,
    on_name: BTreeMap<Oid, usize>,
    next: Vec<Option<usize>>,
}

impl Waiting {
    /// Note the next record.
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

    /// Whether anything is made from a record.
    fn has(&self, oid: &Oid, number: usize) -> bool {
        self.on_name.contains_key(oid) || self.on_record.get(number).is_some_and(Option::is_some)
    }

    /// What is made from an object that is known now.
    fn take(&mut self, oid: &Oid, number: Option<usize>) -> [Option<usize>; 2] {
        let on_record = number
            .and_then(|number| self.on_record.get_mut(number))
            .and_then(Option::take);
        [self.on_name.remove(oid), on_record]
    }

    /// The first of two lists, which goes from its list.
    fn pop(&self, lists: &mut [Option<usize>; 2]) -> Option<usize> {
        let list = lists.iter_mut().find(|list| list.is_some())?;
        let number = list.take()?;
        *list = self.next.get(number).copied().flatten();
        Some(number)
    }

    /// Any that nothing was found for.
    fn left(&self) -> Option<usize> {
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
    /// Note the next record; `delta` is None for one that is none.
    fn add(&mut self, delta: Option<&[u8]>, room: u64) {
        let start = self.bytes.len();
        let kept = delta.filter(|delta| {
            let size = start.saturating_add(delta.len());
            size as u64 <= room && self.bytes.try_reserve(delta.len()).is_ok()
        });
        self.bytes.extend_from_slice(kept.unwrap_or_default());
        self.starts.push(kept.map(|_| start));
    }

    fn get(&self, number: usize, size: usize) -> Option<&[u8]> {
        let start = self.starts.get(number).copied().flatten()?;
        self.bytes.get(start..)?.get(..size)
    }
}

/// Where an object on the way came from.
enum Origin {
    Record(usize),
    /// It was here already.
    Here(Oid),
}

/// An object on the way from a whole one to the one at work.
struct Step {
    origin: Origin,
    /// None if it was forgotten.
    content: Option<Vec<u8>>,
    waiting: [Option<usize>; 2],
}

impl Step {
    fn held(&self) -> u64 {
        self.content
            .as_ref()
            .map_or(0, |content| content.len() as u64)
    }

    fn forget(&mut self) -> u64 {
        self.content
            .take()
            .map_or(0, |content| content.len() as u64)
    }
}

struct Resolver<'a, 'b, S> {
    records: Records<S>,
    bases: &'a mut dyn Bases,
    room: Room,
    budget: &'a mut Budget<'b>,
    /// By the number of the record; None as long as its base is not known.
    ids: Vec<Option<Oid>>,
    naming: Vec<Option<Object>>,
    deltas: Deltas,
    waiting: Waiting,
    /// The bases that were here.
    used: Vec<Oid>,
    held: u64,
}

impl<S: Source> Resolver<'_, '_, S> {
    /// Note all whole objects, and all deltas under their bases.
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

    fn resolve(&mut self) -> Result<()> {
        for number in 0..self.ids.len() {
            let Some(oid) = self.ids.get(number).copied().flatten() else {
                continue;
            };
            let Some(record) = self.records.found().get(number).copied() else {
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
        let named: Vec<Oid> = self.waiting.on_name.keys().copied().collect();
        for oid in named {
            // One that an earlier round came by is not missing any more.
            if !self.waiting.on_name.contains_key(&oid) {
                continue;
            }
            if let Some(here) = self.bases.find(&oid)? {
                self.used.push(oid);
                self.descend(&oid, Origin::Here(oid), here)?;
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Outcome> {
        let records = self.records.found();
        if let Some(left) = self.waiting.left().and_then(|left| records.get(left)) {
            return Ok(Outcome::Missing(left.offset));
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
        Ok(Outcome::Whole(Resolved {
            records: records.to_vec(),
            ids,
            order,
            naming: self.naming,
            bases: self.used,
        }))
    }

    /// The id of a record's object is known now.
    fn note(&mut self, number: usize, kind: Kind, content: &[u8]) -> Result<Oid> {
        let oid = Oid::of(kind, content).map_err(|error| error.within(REPLY))?;
        if kind.names_others() {
            let size = (content.len() as u64).saturating_add(OBJECT_OVERHEAD);
            self.room.naming = self.room.naming.checked_sub(size).ok_or_else(|| {
                Error::new("trees of more bytes than the limit in one pack").within(REPLY)
            })?;
            if let Some(place) = self.naming.get_mut(number) {
                let content = content.to_vec();
                *place = Some(Object { kind, content });
            }
        }
        if let Some(place) = self.ids.get_mut(number) {
            *place = Some(oid);
        }
        Ok(oid)
    }

    /// Make everything that is based on an object, at however many removes.
    fn descend(&mut self, oid: &Oid, origin: Origin, object: Object) -> Result<()> {
        let Object { kind, content } = object;
        let number = match origin {
            Origin::Record(number) => Some(number),
            Origin::Here(_) => None,
        };
        self.held = content.len() as u64;
        let mut stack = vec![Step {
            origin,
            content: Some(content),
            waiting: self.waiting.take(oid, number),
        }];
        while let Some(top) = stack.last_mut() {
            let Some(number) = self.waiting.pop(&mut top.waiting) else {
                self.held = self.held.saturating_sub(top.held());
                stack.pop();
                continue;
            };
            let base = self.content(&mut stack)?;
            let content = self.make(&base, number)?;
            let oid = self.note(number, kind, &content)?;
            self.give_back(&mut stack, base);
            let waiting = self.waiting.take(&oid, Some(number));
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

    /// The newest base, taken from its step; made once more if it was forgotten.
    fn content(&mut self, stack: &mut [Step]) -> Result<Vec<u8>> {
        if let Some(content) = stack.last_mut().and_then(|top| top.content.take()) {
            return Ok(content);
        }
        let mut content = Vec::new();
        for step in stack {
            content = match &step.origin {
                Origin::Here(oid) => self.again(oid)?,
                Origin::Record(number) => self.make(&content, *number)?,
            };
        }
        self.held = self.held.saturating_add(content.len() as u64);
        Ok(content)
    }

    /// The newest base is needed again, or was the last one's: a long chain takes no more memory
    /// than a short one.
    fn give_back(&mut self, stack: &mut [Step], base: Vec<u8>) {
        match stack.last_mut() {
            Some(top) if top.waiting != [None, None] => top.content = Some(base),
            _ => self.held = self.held.saturating_sub(base.len() as u64),
        }
    }

    /// Refuse endless chains; forget the bases that are needed last, if there are too many.
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

    /// An object that was here before, once more.
    fn again(&mut self, oid: &Oid) -> Result<Vec<u8>> {
        let found = self
            .bases
            .find(oid)?
            .ok_or_else(|| Error::new("an object that cannot be read any more").within(oid))?;
        self.spend(found.content.len() as u64)?;
        Ok(found.content)
    }

    /// What a record holds, made from `base` if it is a delta.
    fn make(&mut self, base: &[u8], number: usize) -> Result<Vec<u8>> {
        let record = self.records.found().get(number).copied();
        let record = record.ok_or_else(|| Error::bug("a record that was not read"))?;
        let mut inflated = Vec::new();
        let kept = self.deltas.get(number, record.size);
        if kept.is_none() {
            self.records.inflate(&record, self.budget, &mut inflated)?;
        }
        if matches!(record.base, Base::Whole(_)) {
            return Ok(inflated);
        }
        let delta = kept.unwrap_or(&inflated);
        let within = |error: Error| error.within(place(record.offset));
        let reply = |error: Error| error.within(REPLY);
        let work = (delta.len() as u64).saturating_mul(STEP_WORK);
        self.budget.spend(work).map_err(reply)?;
        let delta = Delta::parse(delta).map_err(within)?;
        self.budget.spend(delta.size() as u64).map_err(reply)?;
        let mut made = Vec::new();
        delta.apply(base, &mut made).map_err(within)?;
        Ok(made)
    }

    fn spend(&mut self, work: u64) -> Result<()> {
        self.budget.spend(work).map_err(|error| error.within(REPLY))
    }
}
