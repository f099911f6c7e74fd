//! Lists that programs print (docs/DOWNSTREAM.md): JSON objects, one a line, or an array with one a
//! line, as `rclone lsjson` prints it; or the specification of mtree, which begins with `#`.

use huai_git::error::{Error, Result};

use crate::entry_list::EntryList;
use crate::json::take_object;
use crate::lines::Lines;
use crate::members::Members;
use crate::mtree::Mtree;
use crate::spool::EntryStore;

/// A list that is read as it arrives.
#[derive(Debug, Default)]
pub struct TextList {
    lines: Lines,
    number: u64,
    framing: Framing,
    mtree: Mtree,
    has_other_digests: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Framing {
    #[default]
    Unknown,
    Lines,
    /// An array of which the end has not arrived.
    Array,
    /// An array to its end.
    Ended,
    Mtree,
}

impl TextList {
    /// Read the next bytes of the list, and add the entries whose lines are complete.  Fails for a
    /// malformed line; no bytes may follow then.
    pub fn feed<S: EntryStore>(&mut self, part: &[u8], entries: &mut EntryList<S>) -> Result<()> {
        let mut lines = std::mem::take(&mut self.lines);
        lines.feed(part, |line| self.take_line(line, entries))?;
        self.lines = lines;
        Ok(())
    }

    /// End the list, which must be complete and not empty, and add the directories that it leaves
    /// out.
    pub fn finish<S: EntryStore>(&mut self, entries: &mut EntryList<S>) -> Result<()> {
        let is_cut = !self.lines.is_empty() || !self.mtree.is_complete();
        self.feed(b"\n", entries)?;
        match self.framing {
            Framing::Array => Err(Error::new("the list is not complete: its array has no end")),
            Framing::Unknown => Err(Error::new("the list is empty")),
            Framing::Mtree if is_cut => Err(Error::new(
                "the list is not complete: it ends within a line or directory",
            )),
            Framing::Lines | Framing::Ended | Framing::Mtree => entries.complete(),
        }
    }

    /// Return true if a file had a digest, but not of the kind that proves content.
    pub fn has_other_digests(&self) -> bool {
        self.has_other_digests
    }

    /// Parse a line, and add its entries; the first lines decide the format.
    fn take_line<S: EntryStore>(&mut self, line: &[u8], entries: &mut EntryList<S>) -> Result<()> {
        self.number = self.number.saturating_add(1);
        if self.framing == Framing::Unknown && line.starts_with(b"#") {
            self.framing = Framing::Mtree;
        }
        let outcome = if self.framing == Framing::Mtree {
            let members = self.mtree.take_line(line);
            members.and_then(|it| it.map_or(Ok(()), |it| self.add(it, entries)))
        } else {
            self.take_objects(line, entries)
        };
        outcome.map_err(|error| error.within(format!("line {}", self.number)))
    }

    /// Parse the JSON objects of a line, and add their entries.  Fails for anything after the end of an array.
    fn take_objects<S: EntryStore>(
        &mut self,
        line: &[u8],
        entries: &mut EntryList<S>,
    ) -> Result<()> {
        let mut rest = line.trim_ascii();
        if self.framing == Framing::Unknown && !rest.is_empty() {
            let array = rest.strip_prefix(b"[");
            self.framing = array.map_or(Framing::Lines, |_| Framing::Array);
            rest = array.unwrap_or(rest).trim_ascii_start();
        }
        while !rest.is_empty() {
            if self.framing == Framing::Ended {
                return Err(Error::new("the list continues after its end"));
            }
            let is_array = self.framing == Framing::Array;
            if let Some(after) = rest.strip_prefix(b"]").filter(|_| is_array) {
                self.framing = Framing::Ended;
                rest = after.trim_ascii_start();
                continue;
            }
            let (members, after) = take_object(rest)?;
            rest = after.trim_ascii_start();
            if is_array {
                rest = rest.strip_prefix(b",").unwrap_or(rest).trim_ascii_start();
            }
            self.add(members, entries)?;
        }
        Ok(())
    }

    /// Add an entry; one of unknown size, or of a type that no snapshot holds, is counted as skipped.
    fn add<S: EntryStore>(&mut self, members: Members, entries: &mut EntryList<S>) -> Result<()> {
        self.has_other_digests |= members.has_other_digests;
        if let Some(entry) = members.into_entry()? {
            return entries.add(entry);
        }
        entries.skip();
        Ok(())
    }
}
