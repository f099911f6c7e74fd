//! A directory of many entries, which is passed on in parts.
//!
//! It is read completely before any part is passed on, because it may change meanwhile and is then
//! read again.  Until then its leaves are packed.

use std::collections::VecDeque;

use huai_sys::call::Outcome;

use super::frame::{self, Directory, Frame, Problem};
use super::leaf::{Leaf, Leaves};
use super::packed::{Packed, Packer};
use crate::walk::queue;

/// The entries of a part, and of the largest directory that is passed on at once.
pub(crate) const PART: usize = 4096;

/// A directory that was read.
#[derive(Debug)]
pub(crate) enum ReadDirectory {
    /// A complete frame.
    Frame(Frame),
    /// A large directory, which is passed on in parts.
    Large(LargeDirectory),
}

impl queue::Frame for ReadDirectory {
    fn size(&self) -> usize {
        match self {
            Self::Frame(frame) => frame.size(),
            Self::Large(large) => large.size(),
        }
    }
}

/// A large directory that was read.
#[derive(Debug)]
pub(crate) struct LargeDirectory {
    /// The first part, without its leaves; later parts share some of its fields.
    head: Directory,
    /// True if others can read it, except for some of its files.
    is_open: bool,
    parts: VecDeque<Part>,
}

/// Consecutive leaves.
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

    /// Add the next leaf; `problems` are those met since the last part, and go into the next one.
    pub(crate) fn add(&mut self, leaf: &Leaf<'_>, problems: &mut Vec<Problem>) -> Outcome<()> {
        self.packer.add(leaf)?;
        if self.packer.len() + problems.len() >= PART {
            self.end_part(problems)?;
        }
        Ok(())
    }

    /// Store the leaves and `problems` met since the last part as a part; leaves `problems` empty.
    fn end_part(&mut self, problems: &mut Vec<Problem>) -> Outcome<()> {
        self.complete.push_back(Part {
            leaves: self.packer.finish_part()?,
            problems: std::mem::take(problems),
        });
        Ok(())
    }

    /// Return the whole directory; `head` has the fields of the directory itself, which others can read if `is_open`.
    pub(crate) fn end(
        &mut self,
        head: Directory,
        is_open: bool,
        problems: &mut Vec<Problem>,
    ) -> Outcome<LargeDirectory> {
        if self.complete.is_empty() || self.packer.len() + problems.len() > 0 {
            self.end_part(problems)?;
        }
        Ok(LargeDirectory {
            head,
            is_open,
            parts: std::mem::take(&mut self.complete),
        })
    }
}

impl LargeDirectory {
    /// Return the bytes that the parts hold.
    pub(crate) fn size(&self) -> usize {
        let part = |part: &Part| part.leaves.size() + frame::size(&part.problems);
        self.parts.iter().map(part).sum()
    }

    /// Return its path.
    pub(crate) fn path(&self) -> &[u8] {
        &self.head.path
    }

    /// Return the next part; `None` at the end.  Only the first has the attributes, and the count of all skipped
    /// entries.
    pub(crate) fn next(&mut self) -> Outcome<Option<Directory>> {
        let Some(part) = self.parts.pop_front() else {
            return Ok(None);
        };
        let mut leaves = Leaves::default();
        part.leaves.for_each(|leaf| leaves.add(leaf))?;
        let path = self.head.path.clone();
        Ok(Some(Directory {
            path,
            attributes: std::mem::take(&mut self.head.attributes),
            leaves: leaves.lines,
            identities: leaves.identities,
            digests: Vec::new(),
            is_plain: self.is_open && part.problems.is_empty() && leaves.unreadable == 0,
            problems: part.problems,
            hardlinks: leaves.hardlinks,
            skipped: std::mem::take(&mut self.head.skipped),
            unreadable: leaves.unreadable,
            device: self.head.device,
            file_system: self.head.file_system,
            inode: self.head.inode,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::Reason;
    use super::*;
    use crate::scan::directory::packed::tests::status;

    fn large(leaves: usize, problems_at: &[usize]) -> LargeDirectory {
        let mut parts = Parts::default();
        let mut problems = Vec::new();
        for number in 0..leaves {
            let name = format!("{number:06}").into_bytes();
            if problems_at.contains(&number) {
                let (name, reason) = (name.clone(), Reason::Temporary);
                problems.push(Problem { name, reason });
            }
            let mut status = status(4);
            status.mode = 0o644;
            let leaf = Leaf {
                name: &name,
                status,
                owners: b"",
                target: None,
            };
            parts.add(&leaf, &mut problems).unwrap();
        }
        let head = Directory {
            path: b"d".to_vec(),
            attributes: b"1".to_vec(),
            skipped: 3,
            ..Directory::default()
        };
        parts.end(head, true, &mut problems).unwrap()
    }

    fn parts(mut large: LargeDirectory) -> Vec<Directory> {
        std::iter::from_fn(|| large.next().unwrap()).collect()
    }

    #[test]
    fn parts_are_of_equal_size_and_the_first_speaks_for_all() {
        for (leaves, sizes) in [
            (0, &[0][..]),
            (1, &[1]),
            (PART, &[PART]),
            (2 * PART + 7, &[PART, PART, 7]),
        ] {
            let split = parts(large(leaves, &[]));
            let lines = |part: &Directory| part.leaves.split(|byte| *byte == b'\n').count() - 1;
            assert_eq!(split.iter().map(lines).collect::<Vec<_>>(), sizes);
            for (number, part) in split.iter().enumerate() {
                assert_eq!(part.is_continuation(), number > 0);
                assert_eq!(part.skipped, if number > 0 { 0 } else { 3 });
                assert_eq!((&*part.path, part.is_plain), (&b"d"[..], true));
            }
        }
    }

    #[test]
    fn a_problem_comes_with_its_neighbours() {
        let split = parts(large(2 * PART, &[5, PART + 1]));
        let plain: Vec<_> = split.iter().map(|part| part.is_plain).collect();
        assert_eq!(plain, [false, false, true]);
        for part in split.iter().take(2) {
            let name = &part.problems.first().unwrap().name;
            assert_eq!(part.problems.len(), 1);
            assert!(part.leaves.windows(6).any(|text| text == &**name));
        }
    }
}
