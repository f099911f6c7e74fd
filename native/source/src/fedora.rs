//! Compares two file lists of Fedora's mirrors (`fullfiletimelist-*`), as `create-filelist` of
//! quick-fedora-mirror writes them.
//!
//! The time in a line is the later one of mtime and ctime, so each change of an entry changes its
//! line.  Memory holds eight bytes for each line of the older list, and the paths that differ.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::io::{Read, Seek, SeekFrom};

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
    pub removed: Vec<Vec<u8>>,
    /// True if a line without a readable path was added, changed or removed: a name has a newline
    /// or a tab.  Which entries differ is then unknown.
    pub has_unreadable: bool,
}

/// Compare the list `new` with an older one.  Both must be complete.
pub fn compare_lists(mut old: impl Read + Seek, new: impl Read) -> Result<ListChanges> {
    let state = RandomState::new();
    let mut hashes = Vec::new();
    each_line(&mut old, |line, _| {
        hashes.push(state.hash_one(line));
        Ok(())
    })?;
    hashes.sort_unstable();
    let mut is_same = vec![false; hashes.len()];
    let mut changes = ListChanges::default();
    each_line(new, |line, path| {
        match (hashes.binary_search(&state.hash_one(line)), path) {
            (Ok(place), _) => mark(&mut is_same, place),
            (Err(_), Some(path)) => _ = changes.changed.insert(checked(path)?),
            (Err(_), None) => changes.has_unreadable = true,
        }
        Ok(())
    })?;
    old.seek(SeekFrom::Start(0)).map_err(failed)?;
    each_line(old, |line, path| {
        let place = hashes.binary_search(&state.hash_one(line));
        let is_listed = place.is_ok_and(|place| is_same.get(place) == Some(&true));
        match path {
            _ if is_listed => {}
            Some(path) if changes.changed.contains(path) => {}
            Some(path) => changes.removed.push(checked(path)?),
            None => changes.has_unreadable = true,
        }
        Ok(())
    })?;
    Ok(changes)
}

fn mark(marks: &mut [bool], place: usize) {
    if let Some(mark) = marks.get_mut(place) {
        *mark = true;
    }
}

fn checked(path: &[u8]) -> Result<Vec<u8>> {
    RelPath::parse(path).map(|path| path.as_bytes().to_vec())
}

/// Return the path in the line of an entry; None if a newline or a tab in a name divided it.
fn path_of(line: &[u8]) -> Option<&[u8]> {
    let mut fields = line.split(|&byte| byte == b'\t').skip(3);
    fields.next().filter(|_| fields.next().is_none())
}

/// Call `found` with each line of the section of files, and its path if it has one.
fn each_line(
    mut from: impl Read,
    mut found: impl FnMut(&[u8], Option<&[u8]>) -> Result<()>,
) -> Result<()> {
    let mut sections = Sections::default();
    let mut buffer = vec![0; BUFFER];
    let mut partial = Vec::new();
    loop {
        let count = from.read(&mut buffer).map_err(failed)?;
        if count == 0 {
            break;
        }
        let mut lines = buffer
            .get(..count)
            .unwrap_or_default()
            .split(|&byte| byte == b'\n');
        let last = lines.next_back().unwrap_or_default();
        for line in lines {
            if partial.is_empty() {
                sections.take_line(line, &mut found)?;
            } else {
                partial.extend_from_slice(line);
                sections.take_line(&std::mem::take(&mut partial), &mut found)?;
            }
        }
        partial.extend_from_slice(last);
        if partial.len() > LINE_BYTES {
            return Err(Error::new("the list has a line that is too long"));
        }
    }
    if !partial.is_empty() || !sections.has_ended {
        return Err(Error::new("the list is not complete: [End] is missing"));
    }
    Ok(())
}

#[derive(Debug, Default)]
struct Sections {
    /// The heading of the current section.
    heading: Vec<u8>,
    is_versioned: bool,
    has_ended: bool,
}

impl Sections {
    fn take_line(
        &mut self,
        line: &[u8],
        found: &mut impl FnMut(&[u8], Option<&[u8]>) -> Result<()>,
    ) -> Result<()> {
        if line.is_empty() {
            return Ok(());
        }
        // A path may look like a heading; the line of an entry has tabs.
        if line.starts_with(b"[") && !line.contains(&b'\t') {
            self.heading = line.to_vec();
            self.has_ended = line == b"[End]";
            return Ok(());
        }
        match &*self.heading {
            b"[Version]" => {
                self.is_versioned = VERSIONS.contains(&line);
                if self.is_versioned {
                    return Ok(());
                }
                Err(Error::new("the list has a version that is not supported"))
            }
            b"[Files]" if self.is_versioned => found(line, path_of(line)),
            heading if self.is_versioned && heading.starts_with(b"[") => Ok(()),
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
        let changes = compare_lists(Cursor::new(list(old)), &*list(new)).unwrap();
        assert!(!changes.has_unreadable);
        let text = |path: &Vec<u8>| String::from_utf8(path.clone()).unwrap();
        let mut paths: Vec<_> = changes.changed.iter().map(text).collect();
        paths.sort();
        (paths, changes.removed.iter().map(text).collect())
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
    fn names_that_a_line_cannot_hold_are_told_by_their_change_alone() {
        let old = ["5\tf\t1\ta", "5\tf\t1\tnew\nline", "5\tf\t1\tt\tab"];
        let has_unreadable = |old: &[&str], new: &[&str]| {
            let changes = compare_lists(Cursor::new(list(old)), &*list(new)).unwrap();
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
            let cut = compare_lists(Cursor::new(list_bytes.clone()), &list_bytes[..end]);
            assert!(cut.is_err(), "{end}");
        }
        for bad in [
            "[Version]\n4\n[Files]\n[End]\n",
            "[Files]\n5\tf\t1\ta\n[End]\n",
            "[Version]\n2\n[Files]\n5\tf\t1\t../up\n[End]\n",
            "<html>\n[End]\n",
        ] {
            assert!(
                compare_lists(Cursor::new(list_bytes.clone()), bad.as_bytes()).is_err(),
                "{bad}"
            );
        }
    }
}
