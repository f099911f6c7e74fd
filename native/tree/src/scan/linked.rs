//! The record of hardlink groups: the names of each file, as commits found them.
//!
//! A line has a leader and a member, escaped, separated by a tab.  An outdated pair costs a look at
//! two paths; a missing pair would be an error.

use std::collections::HashSet;
use std::os::fd::{AsFd, BorrowedFd};

use huai_format::escape::{put_escaped, unescape};
use huai_format::path::RelPath;
use huai_git::find::{position, split_before};
use huai_sys::call::{self, Outcome};
use huai_sys::error::{Errno, Error, Result};
use huai_sys::stop::Stop;

use super::touched::Replaced;

/// The bytes of a read.
const BLOCK: usize = 1 << 20;
/// The longest line: every byte of two paths escaped.
const LINE: usize = 1 << 16;

/// Append a pair.
pub(crate) fn put_pair(record: &mut Vec<u8>, leader: &[u8], member: &[u8]) {
    put_escaped(record, leader);
    record.push(b'\t');
    put_escaped(record, member);
    record.push(b'\n');
}

/// Return all names of the groups with a name in `replaced`, in any order; the file at the path `record` may be
/// missing, but not damaged.  `CANCELED` after a stop.
pub fn find_linked(record: &[u8], replaced: &Replaced, stop: &Stop) -> Result<Vec<RelPath>> {
    let find = || {
        let file = match call::open_file(record) {
            Err(Errno::NOENT) => return Ok(Vec::new()),
            file => file?,
        };
        let mut leaders: HashSet<Vec<u8>> = HashSet::new();
        each_pair(file.as_fd(), stop, |leader, member| {
            if is_replaced(&leader, replaced) || is_replaced(&member, replaced) {
                leaders.insert(leader);
            }
        })?;
        let mut names = HashSet::new();
        if !leaders.is_empty() {
            each_pair(file.as_fd(), stop, |leader, member| {
                if leaders.contains(&leader) {
                    names.insert(member);
                    names.insert(leader);
                }
            })?;
        }
        Ok(names.into_iter().map(RelPath::trusted).collect())
    };
    find().map_err(|errno| Error::new("read", record, errno))
}

fn is_replaced(path: &[u8], replaced: &Replaced) -> bool {
    let own = RelPath::trusted(path.to_vec());
    let is_below = |path: &[u8]| replaced.with_all_below.contains(path);
    replaced.alone.contains(path) || is_below(path) || own.ancestors().any(is_below)
}

/// Call `each` with leader and member of each pair; an unfinished last line is ignored.  `IO` for a
/// damaged record, `CANCELED` after a stop.
fn each_pair(
    file: BorrowedFd<'_>,
    stop: &Stop,
    mut each: impl FnMut(Vec<u8>, Vec<u8>),
) -> Outcome<()> {
    let mut room = vec![0; BLOCK];
    let mut pending: Vec<u8> = Vec::new();
    let mut offset = 0;
    loop {
        if stop.is_set() {
            return Err(Errno::CANCELED);
        }
        let count = call::read_at(file, offset, &mut room)?;
        if count == 0 {
            return Ok(());
        }
        offset += count as u64;
        pending.extend_from_slice(&room[..count]);
        let mut rest = &*pending;
        while let Some(end) = position(rest, b'\n') {
            let (line, after) = rest.split_at(end);
            let (leader, member) = split_before(line, b'\t');
            let member = member.strip_prefix(b"\t").ok_or(Errno::IO)?;
            let read = |text| unescape(text).map_err(|_| Errno::IO);
            each(read(leader)?.into_owned(), read(member)?.into_owned());
            rest = after.get(1..).unwrap_or_default();
        }
        let left = rest.len();
        if left > LINE {
            return Err(Errno::IO);
        }
        pending.drain(..pending.len() - left);
    }
}
