//! Reads single objects of a complete pack by its index.
//!
//! The pack was checked when it arrived; later decay on the disk fails the checksums of compressed
//! bytes.  Rule: even so, each size is checked against a limit before it is used.

use crate::budget::Budget;
use crate::delta::{Delta, STEP_WORK};
use crate::error::{Error, Result};
use crate::index::{Index, IndexEntry, RecordOrder};
use crate::inflate::Inflater;
use crate::limits::{READ_DELTAS, READ_DEPTH, READ_WORK};
use crate::object::{Form, Object, PackedForm};
use crate::oid::OID_BYTES;
use crate::window::{Source, Window};

/// The work per object of an ordinary chain, in sizes of its result.
const LINK_WORK: u64 = 4;
/// The bytes that any object is worth at least.
const SMALL: usize = 1 << 14;

/// A reader of the objects of one pack.
pub struct PackReader<S> {
    window: Window<S>,
    inflater: Inflater,
    end: u64,
    /// The records in pack order, once the end of one was needed.
    order: Option<RecordOrder>,
}

/// An object in its packed form, without the header that `put_header` writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    /// The form of the record.
    pub form: PackedForm,
    /// The inflated size in bytes.
    pub size: usize,
    /// The compressed bytes.
    pub data: Vec<u8>,
}

impl<S: Source> PackReader<S> {
    /// Read the pack in `source`.
    pub fn new(source: S) -> Self {
        let end = source.size().saturating_sub(OID_BYTES as u64);
        Self {
            window: Window::new(source),
            inflater: Inflater::default(),
            end,
            order: None,
        }
    }

    /// Read the object of an entry of `index`, and check the CRC-32 of its record, but not those of
    /// its bases.  Fails if a record is damaged, a base is missing, or a limit of `READ_…` is
    /// exceeded.
    ///
    /// `spare` is the work in bytes that small objects made from large ones may still cost, over
    /// all reads; what this read costs of it is subtracted, and more than that is an error.
    pub fn read(
        &mut self,
        entry: &IndexEntry,
        index: &mut Index<impl Source>,
        spare: &mut u64,
    ) -> Result<Object> {
        self.unfold(entry, index, spare)
            .map_err(|error| error.within(entry.oid))
    }

    /// Return the first `size` bytes of the object of an entry, or all of a shorter one, unchecked;
    /// `None` for a delta.
    pub fn head(&mut self, entry: &IndexEntry, size: usize) -> Result<Option<Object>> {
        self.window.seek(entry.offset, self.end);
        let Form::Whole(kind) = self.window.take_header()?.0 else {
            return Ok(None);
        };
        let mut content = Vec::new();
        self.inflater
            .inflate_head(&mut self.window, size, &mut content)
            .map_err(|error| error.within(entry.oid))?;
        Ok(Some(Object { kind, content }))
    }

    /// Return an object in its packed form, a delta by the id of its base; checks the CRC-32.
    pub fn packed(&mut self, entry: &IndexEntry, index: &mut Index<impl Source>) -> Result<Packed> {
        self.copy(entry, index)
            .map_err(|error| error.within(entry.oid))
    }

    /// Read an object in its packed form, and check its CRC-32.
    fn copy(&mut self, entry: &IndexEntry, index: &mut Index<impl Source>) -> Result<Packed> {
        let order = match &mut self.order {
            Some(order) => order,
            none => none.insert(index.order()?),
        };
        let end = order.end(entry.offset).unwrap_or(self.end).min(self.end);
        self.window.seek(entry.offset, end);
        let (form, size) = self.window.take_header()?;
        let mut data = Vec::new();
        loop {
            let bytes = self.window.bytes()?;
            if bytes.is_empty() {
                break;
            }
            data.extend_from_slice(bytes);
            let count = bytes.len();
            self.window.consume(count);
        }
        if self.window.crc() != entry.crc {
            return Err(Error::new("packed bytes are damaged"));
        }
        let form = match form {
            Form::Whole(kind) => PackedForm::Whole(kind),
            Form::OnName(oid) => PackedForm::From(oid),
            Form::OnOffset(distance) => {
                let base = entry.offset.checked_sub(distance);
                let base = base.and_then(|base| order.number(base));
                let base = base.ok_or_else(|| Error::new("a delta without its base"))?;
                PackedForm::From(index.oid(base)?)
            }
        };
        Ok(Packed { form, size, data })
    }

    /// Inflate the record, and those of its bases up to a whole object; then apply the deltas.
    fn unfold(
        &mut self,
        entry: &IndexEntry,
        index: &mut Index<impl Source>,
        spare: &mut u64,
    ) -> Result<Object> {
        let go_on = || false;
        let mut work = Budget::new(READ_WORK, &go_on);
        let mut room = Budget::new(READ_DELTAS, &go_on);
        let mut deltas = Vec::new();
        let mut at = entry.offset;
        let mut object = loop {
            self.window.seek(at, self.end);
            let (form, size) = self.window.take_header()?;
            work.spend(size as u64)?;
            let mut content = Vec::new();
            self.inflater
                .inflate(&mut self.window, size, &mut content)?;
            if at == entry.offset && self.window.crc() != entry.crc {
                return Err(Error::new("packed bytes are damaged"));
            }
            let base = match form {
                Form::Whole(kind) => break Object { kind, content },
                Form::OnOffset(distance) => at.checked_sub(distance).filter(|base| *base < at),
                Form::OnName(oid) => index.find(&oid)?.map(|base| base.offset),
            };
            at = base.ok_or_else(|| Error::new("a delta without its base"))?;
            room.spend(size as u64)?;
            deltas.push(content);
            if deltas.len() > READ_DEPTH {
                let rule = format!("a chain of more than {READ_DEPTH} deltas");
                return Err(Error::new(rule));
            }
        };
        let mut result = Vec::new();
        for delta in deltas.iter().rev() {
            work.spend((delta.len() as u64).saturating_mul(STEP_WORK))?;
            let delta = Delta::parse(delta)?;
            work.spend(delta.size() as u64)?;
            delta.apply(&object.content, &mut result)?;
            std::mem::swap(&mut object.content, &mut result);
        }
        // A chain of objects as large as its result costs as much; a hostile pack uses
        // large objects for each small one.
        let worth = (object.content.len().max(SMALL) as u64)
            .saturating_mul(LINK_WORK)
            .saturating_mul((deltas.len() as u64).saturating_add(1));
        let extra = READ_WORK.saturating_sub(work.left()).saturating_sub(worth);
        *spare = spare
            .checked_sub(extra)
            .ok_or_else(|| Error::new("small objects made from large ones, more than the limit"))?;
        Ok(object)
    }
}
