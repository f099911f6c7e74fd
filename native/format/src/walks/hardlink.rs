//! Checks the one rule of a snapshot that spans several lines: hardlink groups are consistent.
//!
//! A check of all reads the tree once, and the directories of leaders a second time; memory grows with
//! the number of groups.

use std::collections::{BTreeMap, HashSet};

use huai_git::error::{Error, Result};

use crate::entries::{Body, Entry, Leaves};
use crate::path::{RelPath, at, parent, show};
use crate::snapshots::{EntryLimit, Listing, Lookup, ObjectReader, Snapshot, Walk};

/// The links that are held at a time by `check_hardlinks_at`.
const HELD: usize = 10_000;

/// A member of a group, and its path.
struct Member {
    path: RelPath,
    entry: Entry<'static>,
}

/// Check that each leader is a regular file, is not a link itself, and equals its group; return
/// true if there is a group.
pub fn check_hardlinks<R: ObjectReader>(snapshot: &Snapshot<R>, limit: u64) -> Result<bool> {
    let mut members = first_members(snapshot, limit)?;
    if members.is_empty() {
        return Ok(false);
    }
    let above = |leader: &RelPath| parent(leader.as_bytes()).to_vec();
    let directories: HashSet<Vec<u8>> = members.keys().map(above).collect();
    let mut walk = Walk::new(snapshot, EntryLimit::new(limit));
    while let Some(listing) = walk.next(snapshot)? {
        if !directories.contains(listing.path.as_bytes()) {
            continue;
        }
        for entry in Leaves::new(&listing.path, &listing.leaves, &listing.digests) {
            let entry = entry?;
            let path = listing.path.join(&entry.name);
            if let Some(member) = members.remove(&path) {
                check_equal(&path, &member, Some(&entry))?;
            }
        }
    }
    members
        .iter()
        .try_for_each(|(leader, member)| check_equal(leader, member, None))
        .map(|()| true)
}

/// Check each hardlink at `paths`: its leader is a regular file, is not a link itself, and equals it.
/// Other entries pass.
pub fn check_hardlinks_at<R: ObjectReader>(
    lookup: &mut Lookup<R>,
    paths: &[Vec<u8>],
) -> Result<()> {
    for some in paths.chunks(HELD) {
        let mut links = Vec::new();
        for path in some {
            let path = RelPath::trusted(path.clone());
            let Some(mut entry) = entry_at(lookup, &path)? else {
                continue;
            };
            if let Some(leader) = take_link(&mut entry) {
                links.push((leader, Member { path, entry }));
            }
        }
        links.sort_by(|(one, _), (other, _)| one.cmp(other));
        for group in links.chunk_by(|(one, _), (other, _)| one == other) {
            let Some((leader, _)) = group.first() else {
                continue;
            };
            let entry = entry_at(lookup, leader)?;
            for (leader, member) in group {
                check_equal(leader, member, entry.as_ref())?;
            }
        }
    }
    Ok(())
}

/// Return the file or symlink at `path`; `None` if neither is there.
fn entry_at<R: ObjectReader>(
    lookup: &mut Lookup<R>,
    path: &RelPath,
) -> Result<Option<Entry<'static>>> {
    let Some((line, digest)) = lookup.leaf(path)? else {
        return Ok(None);
    };
    let directory = RelPath::trusted(parent(path.as_bytes()).to_vec());
    let entry = Leaves::new(&directory, &line, &digest).next().transpose()?;
    Ok(entry.map(Entry::into_owned))
}

/// Return one member of each group by its leader; an error if another of the group differs from it.
fn first_members<R: ObjectReader>(
    snapshot: &Snapshot<R>,
    limit: u64,
) -> Result<BTreeMap<RelPath, Member>> {
    let mut members: BTreeMap<RelPath, Member> = BTreeMap::new();
    let mut walk = Walk::new(snapshot, EntryLimit::new(limit));
    while let Some(listing) = walk.next(snapshot)? {
        if may_link(&listing) {
            add_members(&listing, &mut members)?;
        }
    }
    Ok(members)
}

/// Add the first member of each new group; check that the others equal it.
fn add_members(listing: &Listing, members: &mut BTreeMap<RelPath, Member>) -> Result<()> {
    for entry in Leaves::new(&listing.path, &listing.leaves, &listing.digests) {
        let mut entry = entry?;
        let Some(leader) = take_link(&mut entry) else {
            continue;
        };
        let path = listing.path.join(&entry.name);
        let entry = entry.into_owned();
        let member = Member { path, entry };
        if let Some(first) = members.get(&leader) {
            check_equal(&leader, &member, Some(&first.entry))?;
        } else {
            members.insert(leader, member);
        }
    }
    Ok(())
}

fn may_link(listing: &Listing) -> bool {
    listing.leaves.windows(2).any(|pair| pair == b"\th")
}

/// Remove and return the leader of a hardlink; `None` for another entry.
fn take_link(entry: &mut Entry<'_>) -> Option<RelPath> {
    match &mut entry.body {
        Body::File { link, .. } => link.take(),
        _ => None,
    }
}

/// Check that `leader_entry`, the entry at `leader` if there is one, is a file without a link, and
/// equals a member of the group.
fn check_equal(leader: &RelPath, member: &Member, leader_entry: Option<&Entry<'_>>) -> Result<()> {
    let is_leader = |entry: &&Entry<'_>| matches!(entry.body, Body::File { link: None, .. });
    let reason = match leader_entry.filter(is_leader) {
        None => "a hardlink to what is not the first file of a group",
        Some(leader_entry) if member.entry.differs(leader_entry) => {
            "a hardlink differs from its group"
        }
        Some(_) => return Ok(()),
    };
    let rule = format!("{reason}: {}", show(leader.as_bytes()));
    Err(at(&member.path, Error::new(rule)))
}
