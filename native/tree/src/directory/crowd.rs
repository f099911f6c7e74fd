//! A directory of many entries, on its way in parts.
//!
//! It is read as a whole before any of it goes on: it may change meanwhile, and then it is read
//! again.  Until then its leaves are packed.

use std::collections::VecDeque;

use super::frame::{self, Directory, Problem};
use super::leaf::{Leaf, Leaves};
use super::packed::{Packed, Packer};
use crate::call::Outcome;

/// Entries of a part, and of the largest directory that comes as a whole.
pub(crate) const PART: usize = 4096;

/// A large directory that was read.
#[derive(Debug)]
pub(crate) struct Crowd {
    /// The first part, without its leaves; later ones have of it what they share.
    head: Directory,
    /// Others may read it, but for some of its files.
    is_open: bool,
    parts: VecDeque<Part>,
}

/// Some neighbours.
#[derive(Debug)]
struct Part {
    leaves: Packed,
    problems: Vec<Problem>,
}

/// The parts of a directory that is being read.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    complete: VecDeque<Part>,
    packer: Packer,
}

impl Parts {
    pub(crate) fn clear(&mut self) {
        self.complete.clear();
        self.packer.clear();
    }

    /// Adds the next leaf; `problems` are those met since the last part was complete.
    pub(crate) fn put(&mut self, leaf: &Leaf<'_>, problems: &mut Vec<Problem>) -> Outcome<()> {
        self.packer.put(leaf)?;
        if self.packer.len() + problems.len() >= PART {
            self.end_part(problems)?;
        }
        Ok(())
    }

    fn end_part(&mut self, problems: &mut Vec<Problem>) -> Outcome<()> {
        self.complete.push_back(Part {
            leaves: self.packer.take()?,
            problems: std::mem::take(problems),
        });
        Ok(())
    }

    /// All of it; `head` says what is to be said of the directory itself.
    pub(crate) fn end(
        &mut self,
        head: Directory,
        is_open: bool,
        problems: &mut Vec<Problem>,
    ) -> Outcome<Crowd> {
        if self.complete.is_empty() || self.packer.len() + problems.len() > 0 {
            self.end_part(problems)?;
        }
        Ok(Crowd {
            head,
            is_open,
            parts: std::mem::take(&mut self.complete),
        })
    }
}

impl Crowd {
    /// Bytes that it holds.
    pub(crate) fn size(&self) -> usize {
        let part = |part: &Part| part.leaves.size() + frame::size(&part.problems);
        self.parts.iter().map(part).sum()
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &[u8] {
        &self.head.path
    }

    /// The next part; none: that was all.
    pub(crate) fn next(&mut self) -> Outcome<Option<Directory>> {
        let Some(part) = self.parts.pop_front() else {
            return Ok(None);
        };
        let mut leaves = Leaves::default();
        part.leaves.each(|leaf| leaves.put(leaf))?;
        let path = self.head.path.clone();
        Ok(Some(Directory {
            path,
            attributes: std::mem::take(&mut self.head.attributes),
            leaves: leaves.lines,
            identities: leaves.identities,
            is_plain: self.is_open && part.problems.is_empty() && leaves.unreadable == 0,
            problems: part.problems,
            hardlinks: leaves.hardlinks,
            skipped: std::mem::take(&mut self.head.skipped),
            unreadable: leaves.unreadable,
            device: self.head.device,
            inode: self.head.inode,
        }))
    }
}
