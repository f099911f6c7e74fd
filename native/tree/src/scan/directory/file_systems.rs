//! Numbers for file systems that survive a remount.
//!
//! The kernel numbers many of them in the order in which they are mounted (btrfs, ZFS, NFS,
//! overlayfs, device-mapper), so its number is useless after a boot.  A file system is identified
//! by its own id if that is made from a UUID, otherwise by inode and time of birth of its root.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use blake3::Hasher;
use huai_sys::call::{self, Outcome, Status, Time};

/// The types whose file system id (statfs(2)) is made from a UUID, or an equivalent: ext2 to
/// ext4, btrfs, bcachefs, ZFS, `CephFS`.  The id of others is a device number or random.
const WITH_OWN_ID: [u64; 5] = [0xef53, 0x9123_683e, 0xca45_1a4e, 0x2fc1_2fc1, 0x00c3_6400];
/// NFS, which reports no time of birth in most versions; the inode of its root has to suffice.
const NFS: u64 = 0x6969;
/// A bit that is set in each of these numbers, and in none of the kernel's.
const OWN: u64 = 1 << 63;
/// The most directories between a directory and the root of its file system.
const MOST_STEPS: usize = 4096;

/// The numbers of the file systems so far, by mount and by the kernel's number.
#[derive(Debug, Default)]
pub(crate) struct FileSystems(Mutex<HashMap<(u64, u64), u64>>);

impl FileSystems {
    /// Return the number, found once, of a directory's file system; 0 if only the kernel's is known.
    pub(crate) fn number(&self, directory: BorrowedFd<'_>, status: &Status) -> u64 {
        let mut numbers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = numbers.entry((status.mount, status.device));
        *number.or_insert_with(|| identify(directory, status).unwrap_or_default())
    }

    /// Give the file system of `snapshot` the number of that of `live`; does nothing unless `snapshot` is a copy of `live`.
    ///
    /// btrfs and ZFS have another id for each snapshot.  The copy of a directory has its inode and
    /// time of birth.
    pub(crate) fn join(&self, snapshot: BorrowedFd<'_>, live: BorrowedFd<'_>) -> Outcome<()> {
        let (copy, copy_birth) = call::status_with_birth(snapshot)?;
        let (status, birth) = call::status_with_birth(live)?;
        let is_copy = copy.inode == status.inode
            && copy_birth == birth
            && birth.as_ref().is_some_and(is_known)
            && call::file_system(snapshot)?.0 == call::file_system(live)?.0;
        if is_copy {
            let number = self.number(live, &status);
            let mut numbers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            numbers.insert((copy.mount, copy.device), number);
        }
        Ok(())
    }
}

/// Return the identity of a file system as a number; an error or 0 if it has none.
fn identify(directory: BorrowedFd<'_>, status: &Status) -> Outcome<u64> {
    let (kind, id) = call::file_system(directory)?;
    if WITH_OWN_ID.contains(&kind) && id != 0 {
        return Ok(number([kind, id, 0, 0]));
    }
    let root = root(directory, status)?;
    let (root, birth) = call::status_with_birth(root.as_fd())?;
    Ok(match birth.filter(is_known) {
        Some(birth) => number([
            kind,
            root.inode,
            u64::from_le_bytes(birth.seconds.to_le_bytes()),
            u64::from(birth.nanoseconds),
        ]),
        None if kind == NFS => number([kind, root.inode, 0, 0]),
        None => 0,
    })
}

/// Return true if a file system knows a time of birth: some report 1970 otherwise.
fn is_known(birth: &Time) -> bool {
    birth.seconds != 0 || birth.nanoseconds != 0
}

/// Hash the parts of an identity to a number with the bit `OWN`.
fn number(parts: [u64; 4]) -> u64 {
    let mut hasher = Hasher::new();
    for part in parts {
        hasher.update(&part.to_le_bytes());
    }
    let digest = hasher.finalize();
    let first = digest.as_bytes().first_chunk();
    OWN | first.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Return the highest directory of the same file system, as seen from this one.
///
/// Bind mounts of parts of it are crossed: whether there are any depends on the namespace of the
/// process.
fn root(directory: BorrowedFd<'_>, status: &Status) -> Outcome<OwnedFd> {
    let mut top = call::open_for_lookups(directory, b".")?;
    let mut inode = status.inode;
    for _ in 0..MOST_STEPS {
        let above = call::open_for_lookups(top.as_fd(), b"..")?;
        let status_above = call::status(above.as_fd())?;
        if status_above.device != status.device || status_above.inode == inode {
            break;
        }
        (top, inode) = (above, status_above.inode);
    }
    Ok(top)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_makes_another_number_and_none_is_one_of_the_kernel() {
        let parts = [1, 2, 3, 4];
        let mut numbers = vec![number(parts)];
        for changed in 0..parts.len() {
            let mut other = parts;
            other[changed] += 1;
            numbers.push(number(other));
        }
        assert!(numbers.iter().all(|number| number & OWN != 0));
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 1 + parts.len());
    }

    #[test]
    fn a_directory_has_the_number_of_those_above_it() {
        let top = call::open_root(b"/sys").unwrap();
        let below = call::open_root(b"/sys/kernel").unwrap();
        let [top, below] = [top, below].map(|directory| {
            let status = call::status(directory.as_fd()).unwrap();
            let root = root(directory.as_fd(), &status).unwrap();
            call::status(root.as_fd()).unwrap().inode
        });
        assert_eq!(top, below);
    }
}
