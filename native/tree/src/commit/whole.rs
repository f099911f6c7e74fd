//! Commits the whole tree, or scans a shard of it.

use std::collections::BTreeSet;
use std::os::fd::AsFd;

use huai_format::path::parent;
use huai_format::snapshots::{Lookup, ObjectReader, ObjectWriter};
use huai_format::write::Totals;
use huai_git::oid::Oid;
use huai_sys::call::{self, Outcome};
use huai_sys::stop::Stop;

use super::digesting::Digesting;
use super::failure::{CommitProblem, Failure, Result};
use super::mounts::Mounts;
use super::past::Builder;
use super::remarks::Remarks;
use super::shards::Part;
use crate::digests::Digests;
use crate::scan::directory::{Frame, Problem as Noticed, Reason, View};
use crate::scan::hardlinks::Inode;
use crate::scan::whole_tree::Scan;
use crate::walk::owners::LookUp;

/// The options of a commit of the whole tree.
pub struct WholeOptions<'a, R> {
    /// The part of the tree to scan.
    pub part: Part<R>,
    /// The mount points.
    pub mounts: Mounts,
    /// True to add remarks about entries that others cannot read.
    pub check_readable: bool,
    /// Stores lines of the record of hardlink groups.
    pub keep_pairs: &'a (dyn Fn(&[u8]) -> Outcome<()> + Sync),
    /// Returns the names of owners.
    pub look_up: &'a LookUp<'a>,
    /// Ends the call when set.
    pub stop: &'a Stop,
}

/// The tree of a commit.
#[derive(Debug)]
pub struct WholeCommit {
    /// The id of the top directory's tree.
    pub tree: Oid,
    /// The totals of its leaves, without shards.
    pub totals: Totals,
    /// The number of directories, including the top, without shards.
    pub directories: u64,
    /// The number of entries that no snapshot can hold.
    pub skipped: u64,
    /// The paths whose present state could not be read.
    pub problems: Vec<CommitProblem>,
    /// The remarks.
    pub remarks: Remarks,
    /// The mount points.
    pub mounts: BTreeSet<Vec<u8>>,
    /// The top directory as it was seen.
    pub view: View,
    /// The inode and the leader of each file that may have names in another part.
    pub open: Vec<(Inode, Vec<u8>)>,
    /// The paths of the shards in the tree.
    pub grafted: Vec<Vec<u8>>,
}

/// Scan a tree and write its objects.  `past` is the last commit.  Without `digesting`, files have
/// no digest; with it, the digests are stored, after an error too.  Fails with `Root` if the top
/// directory cannot be read, and with `Stopped` after a stop.
#[expect(clippy::too_many_lines, reason = "the steps of a scan in order")]
pub fn read_whole<R: ObjectReader, W: ObjectWriter>(
    scan: &mut Scan,
    past: Option<Lookup<R>>,
    mut digesting: Option<(&mut Digests, &mut Digesting<'_>)>,
    options: WholeOptions<'_, R>,
    writer: &mut W,
) -> Result<WholeCommit> {
    let read = |digesting: &mut Option<(&mut Digests, &mut Digesting<'_>)>| {
        let scope = options.part;
        let mut builder = Builder::new(&scope.top, past, writer);
        let mut remarks = Remarks::new(options.check_readable);
        let mut mounts = options.mounts;
        scan.restrict(&scope.top, scope.shards.keys().cloned());
        if scan.leaves_out(&scope.top) {
            return Err(Failure::Root(None));
        }
        if !scope.top.is_empty() {
            let above = parent(&scope.top);
            let device = scan
                .root
                .enter(above)
                .and_then(|it| call::status(it.as_fd()));
            let device = device.map_err(|errno| Failure::Root(Some(Reason::Errno(errno))))?;
            mounts.begin_in(above, device.device);
        }
        let (mut view, mut is_complete) = (View::default(), true);
        let mut grafted = Vec::new();
        let stop = options.stop;
        let mut is_first = true;
        let keep = |pairs: &mut Vec<u8>| match &*std::mem::take(pairs) {
            [] => Ok(()),
            pairs => (options.keep_pairs)(pairs).map_err(|_| Failure::Stopped),
        };
        loop {
            let frames = scan.next(options.look_up, stop).map_err(Failure::Tree)?;
            if stop.is_set() {
                return Err(Failure::Stopped);
            }
            if std::mem::take(&mut is_first) {
                view = check_top(frames.first())?;
            }
            if frames.is_empty() {
                break;
            }
            let mut guarded = Vec::with_capacity(frames.len());
            for frame in frames {
                let is_shard = matches!(frame, Frame::Shard { .. });
                let frame = scope.judge(frame);
                is_complete &= !is_shard || matches!(frame, Frame::Shard { .. });
                guarded.extend(mounts.guard(frame, &scan.root, builder.past.as_mut())?);
            }
            if let Some((digests, digesting)) = digesting {
                fill::<R>(&mut guarded, digests, digesting, stop)?;
            }
            for frame in guarded {
                if let Frame::Read(directory) = &frame {
                    if !directory.is_plain {
                        remarks.add_directory(directory);
                    }
                }
                if let Frame::Shard { path, .. } = &frame {
                    grafted.push(path.clone());
                }
                builder.add_frame(frame, &scope)?;
            }
            keep(&mut builder.pairs)?;
        }
        if let Some((digests, _)) = digesting {
            // Without a shard, the last table may be the only one with its digests.
            let stored = if is_complete {
                digests.finish()
            } else {
                digests.flush()
            };
            stored.map_err(Failure::Digests)?;
        }
        let tree = builder.finish()?;
        keep(&mut builder.pairs)?;
        let is_part = !scope.top.is_empty() || !scope.shards.is_empty();
        let open = if is_part {
            builder.open_groups()
        } else {
            Vec::new()
        };
        Ok(WholeCommit {
            tree,
            totals: builder.totals,
            directories: builder.directories,
            skipped: builder.skipped,
            problems: builder.problems,
            remarks,
            mounts: mounts.now,
            view,
            open,
            grafted,
        })
    };
    let done = read(&mut digesting);
    if let (Err(_), Some((digests, _))) = (&done, digesting) {
        let _lost_is_read_again = digests.flush();
    }
    done
}

/// Return file system and inode of the top directory, the first frame; `Failure::Root` if it is missing or unreadable.
fn check_top(first: Option<&Frame>) -> Result<View> {
    match first {
        Some(Frame::Read(top)) => Ok(View {
            file_system: top.file_system,
            inode: top.inode,
        }),
        Some(Frame::Unreadable { reason, .. }) => Err(Failure::Root(Some(*reason))),
        Some(Frame::Shard { .. }) | None => Err(Failure::Root(None)),
    }
}

/// Set the digests of frames; a file that changed meanwhile becomes a problem.  Fails with `Stopped` after a stop.
fn fill<R: ObjectReader>(
    frames: &mut [Frame],
    digests: &mut Digests,
    digesting: &mut Digesting<'_>,
    stop: &Stop,
) -> Result<()> {
    let mut directories: Vec<_> = frames.iter_mut().filter_map(Frame::directory).collect();
    let problems = digesting.fill::<R>(&mut directories, digests, None, stop)?;
    for ((number, file), reason) in problems {
        let name = directories[number].name_of(file);
        directories[number].problems.push(Noticed { name, reason });
    }
    Ok(())
}
