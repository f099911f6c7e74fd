//! Objects of lists in JSON.

use std::collections::BTreeMap;
use std::fmt;

use huai_git::error::{self, Error};
use serde_core::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::entry::EntryType;
use crate::members::{Members, entry_type, parse_digest, parse_mode, parse_size, parse_time};

type Hashes = BTreeMap<Text, Option<Text>>;

/// Take an object from the front of a line; also return the rest of the line.  Fails if it or a value is malformed.
pub(crate) fn take_object(line: &[u8]) -> error::Result<(Members, &[u8])> {
    let malformed = || Error::new("this is not an object of JSON");
    let mut objects = serde_json::Deserializer::from_slice(line).into_iter::<Object>();
    let Some(Ok(object)) = objects.next() else {
        return Err(malformed());
    };
    if let Some(fault) = object.fault {
        return Err(fault);
    }
    let rest = line.get(objects.byte_offset()..).ok_or_else(malformed)?;
    Ok((object.members, rest))
}

/// An object, with the first fault of its values.
#[derive(Debug, Default)]
struct Object {
    members: Members,
    fault: Option<Error>,
}

impl Object {
    /// Take the value of the member `key`; unknown ones are ignored, and the first wrong one becomes the fault.
    fn take_member<'de, A>(&mut self, key: &[u8], map: &mut A) -> Result<(), A::Error>
    where
        A: MapAccess<'de>,
    {
        match key {
            b"path" | b"Path" => self.members.path = text(map)?,
            b"type" => self.members.kind = text(map)?.map(|kind| entry_type(&kind)),
            b"IsDir" => {
                let is_directory = map.next_value::<Option<bool>>()? == Some(true);
                self.members.is_of_rclone = true;
                self.members.kind = is_directory.then_some(EntryType::Directory);
            }
            b"size" | b"Size" => {
                let size = map.next_value::<Option<&RawValue>>()?;
                self.members.size = size.and_then(|it| self.keep(parse_size(it.get().as_bytes())));
            }
            b"mtime" | b"ModTime" => {
                let value = map.next_value::<Option<&RawValue>>()?;
                self.members.mtime = value.and_then(|it| self.keep(parse_time(it)).flatten());
            }
            b"mode" => self.members.mode = text(map)?.and_then(|it| self.keep(parse_mode(&it))),
            b"target" => self.members.target = text(map)?.unwrap_or_default(),
            b"digest" => {
                self.members.digest = text(map)?.and_then(|it| self.keep(parse_digest(&it)));
            }
            b"Hashes" => {
                let hashes = map.next_value::<Option<Hashes>>()?.unwrap_or_default();
                for (Text(name), hash) in hashes {
                    let Text(hash) = hash.unwrap_or_default();
                    if name == b"blake3" && !hash.is_empty() {
                        self.members.digest = self.keep(parse_digest(&hash));
                    } else {
                        self.members.has_other_digests |= !hash.is_empty();
                    }
                }
            }
            _ => drop(map.next_value::<IgnoredAny>()?),
        }
        Ok(())
    }

    /// Return the value; `None` for a fault, of which the first stays.
    fn keep<T>(&mut self, value: error::Result<T>) -> Option<T> {
        value.map_err(|fault| self.fault.get_or_insert(fault)).ok()
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Self::default())
    }
}

impl<'de> Visitor<'de> for Object {
    type Value = Self;

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self, A::Error> {
        while let Some(Text(key)) = map.next_key()? {
            self.take_member(&key, &mut map)?;
        }
        Ok(self)
    }
}

/// A text as bytes, which may be other than UTF-8.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Text(Vec<u8>);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_bytes(Self::default())
    }
}

impl Visitor<'_> for Text {
    type Value = Self;

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str("a text")
    }

    /// Take the bytes.  `serde_json` writes a lone surrogate as three; one from U+DC80 to U+DCFF is
    /// the byte that Python's `surrogateescape` makes it of.
    fn visit_bytes<E: serde_core::de::Error>(mut self, mut bytes: &[u8]) -> Result<Self, E> {
        if !bytes.contains(&0xed) {
            self.0.extend_from_slice(bytes); // nearly all
            return Ok(self);
        }
        loop {
            bytes = match bytes {
                [] => return Ok(self),
                [0xed, high @ 0xb2..=0xb3, low @ 0x80..=0xbf, rest @ ..] => {
                    self.0.push(low | (high & 1) << 6);
                    rest
                }
                [0xed, 0xa0..=0xbf, 0x80..=0xbf, ..] => return Err(E::custom("a lone surrogate")),
                [byte, rest @ ..] => {
                    self.0.push(*byte);
                    rest
                }
            };
        }
    }
}

/// Take a text, or `null`, which gives `None`.
fn text<'de, A>(map: &mut A) -> Result<Option<Vec<u8>>, A::Error>
where
    A: MapAccess<'de>,
{
    Ok(map.next_value::<Option<Text>>()?.map(|text| text.0))
}
