//! Reads the files in which `File::Rsync::Mirror::Recent` records events (`RECENT-*.json`).
//!
//! Memory holds the events after a given epoch.  If the upstream's clock was set back, epochs have
//! more digits than a float.

use std::fmt;
use std::io::{BufRead, BufReader, Read};

use huai_format::path::{RelPath, show};
use huai_git::error::{self, Error};
use serde_core::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::spool::failed;

const BYTES: u64 = 1 << 28;
const BUFFER: usize = 1 << 16;

/// Seconds, and the decimals without zeros at their end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch(u64, String);

impl Epoch {
    /// Parse a number of seconds, with or without decimals; an error for other text.
    pub fn parse(text: &str) -> error::Result<Self> {
        let malformed = || Error::new("an epoch that is not a number");
        let (seconds, decimals) = text.split_once('.').unwrap_or((text, ""));
        if !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(malformed());
        }
        let seconds = seconds.parse().map_err(|_| malformed())?;
        Ok(Self(seconds, decimals.trim_end_matches('0').to_owned()))
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(text, "{}.{}", self.0, self.1)
    }
}

/// A file of events, from the newest to the oldest.
#[derive(Debug, Default)]
pub struct RecentFile {
    /// The epoch of the newest event.
    pub newest: Option<Epoch>,
    /// True if it has all events after the given epoch; false without one.
    pub is_complete: bool,
    /// A mark that changes if older events were added.
    pub dirtymark: Vec<u8>,
    /// The intervals of the files of the same tree.
    pub intervals: Vec<Vec<u8>>,
    /// The paths of events after the given epoch, and true for a new or changed entry.
    pub events: Vec<(Vec<u8>, bool)>,
}

/// Read a file, JSON or YAML, and its events after `since`; without `since` no events.  An error if
/// it is malformed, cut off, out of order, or has an unsafe path.
pub fn read_recent(from: impl Read, since: Option<Epoch>) -> error::Result<RecentFile> {
    let mut from = BufReader::with_capacity(BUFFER, from.take(BYTES));
    let mut reader = RecentReader {
        since,
        ..RecentReader::default()
    };
    if !from.fill_buf().map_err(failed)?.starts_with(b"{") {
        return Err(Error::new("this is not a list of events in JSON"));
    }
    reader.read_json(from)?;
    reader.finish()
}

/// A reader of values with their keys.
#[derive(Debug, Default)]
struct RecentReader {
    file: RecentFile,
    since: Option<Epoch>,
    /// The keys of the current value, each after a slash.
    key: Vec<u8>,
    oldest: Option<Epoch>,
    /// The epochs that the file states of its oldest event, and of the last merged one.
    least: Option<Epoch>,
    merged: Option<Epoch>,
    /// The members of the current event.
    epoch: Option<Epoch>,
    path: Option<Vec<u8>>,
    is_new: Option<bool>,
}

impl RecentReader {
    /// Return the file, and set if it is complete; an error if the last event, or those before the oldest stated
    /// epoch, are missing.
    fn finish(mut self) -> error::Result<RecentFile> {
        let is_cut = self.least.is_some() && self.oldest > self.least;
        if is_cut || self.epoch.is_some() || self.path.is_some() || self.is_new.is_some() {
            return Err(Error::new("the list of events is cut off"));
        }
        // Older than the last merged one are only events that no longer belong to the interval.
        let merged = self.merged.filter(|_| self.least.is_some());
        let goes_back = |epoch: Option<Epoch>| epoch.is_some() && epoch <= self.since;
        self.file.is_complete = goes_back(self.oldest) || goes_back(merged);
        Ok(self.file)
    }

    /// Store the value of the current key, if it is a known one; adds an event once all its fields are here.
    fn store(&mut self, value: &[u8]) -> error::Result<()> {
        match &*self.key {
            b"/meta/aggregator" | b"/meta/interval" => self.file.intervals.push(value.to_vec()),
            b"/meta/dirtymark" => self.file.dirtymark = value.to_vec(),
            b"/meta/merged/epoch" => self.merged = Some(epoch(value)?),
            b"/meta/minmax/min" => self.least = Some(epoch(value)?),
            b"/recent/epoch" => self.epoch = Some(epoch(value)?),
            b"/recent/path" => self.path = Some(value.to_vec()),
            b"/recent/type" => {
                self.is_new = match value {
                    b"new" => Some(true),
                    b"delete" => Some(false),
                    _ => return Err(Error::new("an event of an unknown type")),
                }
            }
            _ => {}
        }
        if self.epoch.is_some() && self.path.is_some() && self.is_new.is_some() {
            self.add_event()?;
        }
        Ok(())
    }

    /// Take the members as an event, and keep one after the given epoch.  Fails for an unsafe path, or if it is newer
    /// than the one before.
    fn add_event(&mut self) -> error::Result<()> {
        let epoch = self.epoch.take();
        let path = self.path.take().unwrap_or_default();
        let is_new = self.is_new.take() == Some(true);
        if self.oldest.is_some() && epoch > self.oldest {
            return Err(Error::new("the events are not in order"));
        }
        if path.is_empty() || RelPath::check(&path).is_err() {
            return Err(Error::new("an event with an unsafe path").within(show(&path)));
        }
        if self.oldest.is_none() {
            self.file.newest.clone_from(&epoch);
        }
        if self.since.is_some() && epoch > self.since {
            self.file.events.push((path, is_new));
        }
        self.oldest = epoch;
        Ok(())
    }

    /// Read an object of JSON; an error if it is malformed or cut off.
    fn read_json(&mut self, from: impl Read) -> error::Result<()> {
        let mut json = serde_json::Deserializer::from_reader(from);
        let read = json.deserialize_any(&mut *self).and_then(|()| json.end());
        read.map_err(|error| {
            if error.is_io() {
                failed(error.into())
            } else {
                Error::new(format!(
                    "the list of events is malformed or cut off: {error}"
                ))
            }
        })
    }
}

fn epoch(text: &[u8]) -> error::Result<Epoch> {
    Epoch::parse(&String::from_utf8_lossy(text))
}

impl<'de> DeserializeSeed<'de> for &mut RecentReader {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut RecentReader {
    type Value = ();

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("a list of events")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            let length = self.key.len();
            self.key.push(b'/');
            self.key.extend_from_slice(key.as_bytes());
            map.next_value_seed(&mut *self)?;
            self.key.truncate(length);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(&mut *self)?.is_some() {}
        Ok(())
    }

    /// Store a text.  Perl writes a byte as the character with its number, and other texts as UTF-8.
    fn visit_str<E: de::Error>(self, text: &str) -> Result<(), E> {
        let bytes: Result<Vec<u8>, _> = text.chars().map(u8::try_from).collect();
        let stored = self.store(bytes.as_deref().unwrap_or(text.as_bytes()));
        stored.map_err(|error| E::custom(error.to_string()))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<(), E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<(), E> {
        self.visit_str(&number.to_string())
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }
}
