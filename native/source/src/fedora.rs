//! Compares two file lists of Fedora's mirrors (`fullfiletimelist-*`), as `create-filelist` of
//! quick-fedora-mirror writes them.
//!
//! The time in a line is the later one of mtime and ctime, so each change of an entry changes its
//! line.  Lists of one upstream mostly have the same order: where both have the same next line, it is
//! passed over.  Memory holds some 30 bytes for each line out of step, and the paths that differ.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

use huai_format::limits::LINE_BYTES;
use huai_format::path::RelPath;
use huai_git::error::{Error, Result};

use crate::spool::failed;

const VERSIONS: [&[u8]; 3] = [b"1", b"2", b"3"];
const BUFFER: usize = 1 << 20;

/// The paths in which two lists differ.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ListChanges {
    /// The paths of new and of changed entries.
    pub changed: HashSet<Vec<u8>>,
    /// The paths that only the older list has.
    pub removed: HashSet<Vec<u8>>,
    /// True if a line without a readable path was added, changed or removed: a name has a newline
    /// or a tab.  Which entries differ is then unknown.
    pub has_unreadable: bool,
}

/// The numbers of lines that only one list has had so far, by the hashes of the lines.
type Unmatched = HashMap<u64, u64>;

/// Compare the list `new` with an older one; an error unless both are complete, of a known version,
/// and with valid paths.
pub fn compare_lists(old: impl Read + Seek, new: impl Read + Seek) -> Result<ListChanges> {
    let (mut old, mut new) = (EntryLines::new(old), EntryLines::new(new));
    let (only_old, only_new) = unmatched(&mut old, &mut new)?;
    let mut changes = ListChanges::default();
    if only_old.is_empty() && only_new.is_empty() {
        return Ok(changes);
    }
    let only_old: HashSet<u64> = only_old.into_values().collect();
    let only_new: HashSet<u64> = only_new.into_values().collect();
    old.rewind()?;
    while old.advance()? {
        if only_old.contains(&old.number) {
            match old.path() {
                Some(path) => _ = changes.removed.insert(checked(path)?),
                None => changes.has_unreadable = true,
            }
        }
    }
    new.rewind()?;
    while new.advance()? {
        let is_changed = only_new.contains(&new.number);
        match new.path() {
            Some(path) => {
                if !changes.removed.is_empty() {
                    changes.removed.remove(path);
                }
                if is_changed {
                    changes.changed.insert(checked(path)?);
                }
            }
            None => changes.has_unreadable |= is_changed,
        }
    }
    Ok(changes)
}

/// Read both lists, and return the lines that only one of them has, as hashes with line numbers.
fn unmatched<A: Read, B: Read>(
    old: &mut EntryLines<A>,
    new: &mut EntryLines<B>,
) -> Result<(Unmatched, Unmatched)> {
    let state = RandomState::new();
    let (mut only_old, mut only_new) = (Unmatched::new(), Unmatched::new());
    let (mut has_old, mut has_new) = (old.advance()?, new.advance()?);
    while has_old || has_new {
        if has_old && has_new && old.line == new.line {
            (has_old, has_new) = (old.advance()?, new.advance()?);
            continue;
        }
        // A list whose line the other one has had is behind, and goes on alone until both are in step.
        let (old_hash, new_hash) = (state.hash_one(&old.line), state.hash_one(&new.line));
        if has_new && only_old.remove(&new_hash).is_some() {
            has_new = new.advance()?;
        } else if has_old && only_new.remove(&old_hash).is_some() {
            has_old = old.advance()?;
        } else {
            if has_old {
                only_old.insert(old_hash, old.number);
                has_old = old.advance()?;
            }
            if has_new {
                only_new.insert(new_hash, new.number);
                has_new = new.advance()?;
            }
        }
    }
    Ok((only_old, only_new))
}

/// Copy a path; an error unless it is valid.
fn checked(path: &[u8]) -> Result<Vec<u8>> {
    RelPath::parse(path).map(|path| path.as_bytes().to_vec())
}

/// A reader of the lines of the section of files.
struct EntryLines<R> {
    from: BufReader<R>,
    sections: Sections,
    line: Vec<u8>,
    /// The number of the line.
    number: u64,
}

impl<R: Read> EntryLines<R> {
    fn new(from: R) -> Self {
        Self {
            from: BufReader::with_capacity(BUFFER, from),
            sections: Sections::default(),
            line: Vec::new(),
            number: 0,
        }
    }

    /// Read the next line of an entry; false at the end of a complete list, an error at that of
    /// another.
    fn advance(&mut self) -> Result<bool> {
        loop {
            self.line.clear();
            let most = LINE_BYTES as u64;
            let mut part = self.from.by_ref().take(most);
            part.read_until(b'\n', &mut self.line).map_err(failed)?;
            if self.line.is_empty() && self.sections.has_ended {
                return Ok(false);
            }
            if self.line.pop() != Some(b'\n') {
                return Err(if part.limit() == 0 {
                    Error::new("the list has a line that is too long")
                } else {
                    Error::new("the list is not complete: [End] is missing")
                });
            }
            if self.sections.take_line(&self.line)? {
                self.number = self.number.saturating_add(1);
                return Ok(true);
            }
        }
    }

    /// Return the path in the line; `None` if a newline or a tab in a name divided it.
    fn path(&self) -> Option<&[u8]> {
        let mut fields = self.line.split(|&byte| byte == b'\t').skip(3);
        fields.next().filter(|_| fields.next().is_none())
    }
}

impl<R: Read + Seek> EntryLines<R> {
    fn rewind(&mut self) -> Result<()> {
        self.from.seek(SeekFrom::Start(0)).map_err(failed)?;
        (self.sections, self.number) = (Sections::default(), 0);
        Ok(())
    }
}

#[derive(Debug, Default)]
struct Sections {
    /// The heading of the current section.
    heading: Vec<u8>,
    is_versioned: bool,
    has_ended: bool,
}

impl Sections {
    /// Parse a line; true if it is the line of an entry.  An error for an unknown version, and
    /// outside of all sections.
    fn take_line(&mut self, line: &[u8]) -> Result<bool> {
        if line.is_empty() {
            return Ok(false);
        }
        // A path may look like a heading; the line of an entry has tabs.
        if line.starts_with(b"[") && !line.contains(&b'\t') {
            self.heading = line.to_vec();
            self.has_ended = line == b"[End]";
            return Ok(false);
        }
        match &*self.heading {
            b"[Version]" => {
                self.is_versioned = VERSIONS.contains(&line);
                if self.is_versioned {
                    return Ok(false);
                }
                Err(Error::new("the list has a version that is not supported"))
            }
            b"[Files]" if self.is_versioned => Ok(true),
            heading if self.is_versioned && heading.starts_with(b"[") => Ok(false),
            _ => Err(Error::new("this is not a list of files")),
        }
    }
}

#[cfg(test)]
#[allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests cut known bytes"
)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn list(lines: &[&str]) -> Vec<u8> {
        let files = lines.join("\n");
        format!("[Version]\n2\n\n[Files]\n{files}\n\n[Checksums SHA1]\nab  a\n\n[End]\n").into()
    }

    fn compare(old: &[&str], new: &[&str]) -> (Vec<String>, Vec<String>) {
        let changes = compare_lists(Cursor::new(list(old)), Cursor::new(list(new))).unwrap();
        assert!(!changes.has_unreadable);
        let text = |path: &Vec<u8>| String::from_utf8(path.clone()).unwrap();
        let sorted = |paths: &HashSet<Vec<u8>>| {
            let mut paths: Vec<_> = paths.iter().map(text).collect();
            paths.sort();
            paths
        };
        (sorted(&changes.changed), sorted(&changes.removed))
    }

    #[test]
    fn new_changed_and_removed_lines_are_told_apart() {
        let old = ["5\tf\t1\ta", "5\td\t0\td", "5\tf-\t1\td/b", "9\tl\t3\td/c"];
        let new = ["5\tf\t1\ta", "6\td\t0\td", "5\tf\t1\td/b", "7\tf\t1\t[new]"];
        let (changed, gone) = compare(&old, &new);
        assert_eq!(changed, ["[new]", "d", "d/b"]);
        assert_eq!(gone, ["d/c"]);
        assert_eq!(compare(&old, &old), (vec![], vec![]));
    }

    #[test]
    fn the_order_does_not_matter() {
        let lines: Vec<_> = (0..200)
            .map(|number| format!("5\tf\t1\t{number}"))
            .collect();
        let old: Vec<_> = lines.iter().map(String::as_str).collect();
        for begin in [1, 2, 100, 199] {
            let mut new = [&old[begin..], &old[..begin]].concat();
            assert_eq!(compare(&old, &new), (vec![], vec![]));
            new.reverse();
            assert_eq!(compare(&old, &new), (vec![], vec![]));
            let last = new.pop().map(|line| line[6..].to_string());
            new.insert(50, "5\tf\t1\tnew");
            assert_eq!(
                compare(&old, &new),
                (vec!["new".into()], Vec::from_iter(last))
            );
        }
    }

    #[test]
    fn a_path_of_both_lists_is_not_removed() {
        let (once, twice) = (["5\tf\t1\ta"], ["5\tf\t1\ta", "5\tf\t1\ta"]);
        assert_eq!(compare(&twice, &once), (vec![], vec![]));
        assert_eq!(compare(&["4\tf\t1\ta", once[0]], &once), (vec![], vec![]));
    }

    #[test]
    fn names_that_a_line_cannot_hold_are_told_by_their_change_alone() {
        let old = ["5\tf\t1\ta", "5\tf\t1\tnew\nline", "5\tf\t1\tt\tab"];
        let has_unreadable = |old: &[&str], new: &[&str]| {
            let changes = compare_lists(Cursor::new(list(old)), Cursor::new(list(new))).unwrap();
            assert!(changes.removed.iter().all(|path| path != b"ab"));
            changes.has_unreadable
        };
        assert!(!has_unreadable(&old, &old));
        for position in 1..3 {
            let mut new = old.to_vec();
            new.remove(position);
            assert!(has_unreadable(&old, &new));
            assert!(has_unreadable(&new, &old));
        }
    }

    #[test]
    fn incomplete_and_foreign_lists_are_refused() {
        let list_bytes = list(&["5\tf\t1\ta"]);
        for end in 0..list_bytes.len() - 1 {
            let cut = compare_lists(Cursor::new(&list_bytes), Cursor::new(&list_bytes[..end]));
            assert!(cut.is_err(), "{end}");
        }
        for bad in [
            "[Version]\n4\n[Files]\n[End]\n",
            "[Files]\n5\tf\t1\ta\n[End]\n",
            "[Version]\n2\n[Files]\n5\tf\t1\t../up\n[End]\n",
            "<html>\n[End]\n",
        ] {
            assert!(
                compare_lists(Cursor::new(&list_bytes), Cursor::new(bad)).is_err(),
                "{bad}"
            );
        }
    }
}
