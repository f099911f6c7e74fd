//! Assembles a large file from an older version of it, and from the rest of an interrupted
//! run.  Other code fetches the missing parts.
//!
//! A block that an index places at the same offset in the older version is taken without reading
//! it; the caller knows if that file still matches its index.  Any other block is read,
//! and proved by the index of the new file.  Blocks without a known place are searched
//! at all other offsets of the older version (`shifted`).

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use huai_format::content::block_index::{Block, BlockHasher, BlockIndex, BlockSource, zeros_at};
use huai_git::bug::fit;
use huai_sys::call::{self, Outcome};
use huai_sys::change;
use huai_sys::error::{Errno, Error, Result};
use huai_sys::stop::Stop;
use huai_sys::workers;

use super::shifted::Files;

/// The sources of a new file: files that this process has open as numbers.
#[derive(Debug, Clone, Copy)]
pub struct Sources<'a> {
    /// An older version.
    pub old: Option<u32>,
    /// The sources of the blocks in it, from `BlockIndex::sources`.
    pub blocks: &'a [BlockSource],
    /// The rest of an interrupted run.
    pub partial: Option<u32>,
    /// True to copy equal blocks that cannot be shared; without them the
    /// file is a patch for the older version.
    pub copies: bool,
}

/// The result of an assembly.
#[derive(Debug, Default)]
pub struct Assembled {
    /// The missing ranges, in order.
    pub missing: Vec<Range<u64>>,
    /// True if the new file shares the blocks of the older version.
    pub is_clone: bool,
    /// The bytes from the same offset of the older version.
    pub same: u64,
    /// The bytes from other offsets of it, or from the rest of an interrupted run.
    pub found: u64,
    /// The bytes of blocks that are all zeros.
    pub zeros: u64,
}

/// The source of a block that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockResult {
    Found,
    Zeros,
    Missing,
}

/// Set the size of the empty file open as `target`, and fill it with all available blocks of `index`; adds their
/// bytes to `done`.  The caller writes the missing ranges, which may hold old content.  Fails with `CANCELED` after a
/// stop.
pub fn assemble(
    target: u32,
    index: &BlockIndex,
    sources: Sources<'_>,
    threads: usize,
    (done, stop): (&AtomicU64, &Stop),
) -> Result<Assembled> {
    let target = change::reopen(target).map_err(|errno| Error::new("open", b"", errno))?;
    let reopen = |number: u32| call::reopen(number).map_err(|errno| Error::new("open", b"", errno));
    let work = Work {
        target,
        index,
        old: sources.old.map(reopen).transpose()?,
        partial: sources.partial.map(reopen).transpose()?,
        copies: sources.copies,
        block_sources: sources.blocks,
        done,
        stop,
    };
    let assembled = work.run(threads);
    assembled.map_err(|errno| Error::new("write", b"", errno))
}

/// Return those of `ranges`, as whole blocks in order, in which the open file `number` differs from `index` or cannot
/// be read.  Fails with `CANCELED` after a stop.
pub fn wrong_ranges(
    number: u32,
    index: &BlockIndex,
    ranges: &[Range<u64>],
    threads: usize,
    stop: &Stop,
) -> Result<Vec<Range<u64>>> {
    let find = || {
        let file = call::reopen(number)?;
        let blocks: Vec<_> = ranges
            .iter()
            .flat_map(|range| blocks_of(index, range))
            .collect();
        let next = AtomicUsize::new(0);
        let parts = workers::run(threads, || {
            wrong_blocks(file.as_fd(), index, &blocks, &next, stop)
        });
        let mut wrong = parts.into_iter().collect::<Outcome<Vec<_>>>()?.concat();
        wrong.sort_unstable();
        Ok(joined(wrong.into_iter().map(|number| index.range(number))))
    };
    find().map_err(|errno| Error::new("read", b"", errno))
}

/// Check one of `blocks` after the other, until none is left; returns the wrong ones, unreadable ones included.
/// `CANCELED` after a stop.
fn wrong_blocks(
    file: BorrowedFd<'_>,
    index: &BlockIndex,
    blocks: &[usize],
    next: &AtomicUsize,
    stop: &Stop,
) -> Outcome<Vec<usize>> {
    let mut room = Vec::new();
    let mut wrong = Vec::new();
    while let Some(number) = blocks.get(next.fetch_add(1, Ordering::Relaxed)) {
        if stop.is_set() {
            return Err(Errno::CANCELED);
        }
        if !read_proved(file, index.range(*number), index, *number, &mut room) {
            wrong.push(*number);
        }
    }
    Ok(wrong)
}

/// Return the ranges that differ from the same offsets of the older version, in order, adjacent
/// ones merged.
pub fn changed_ranges(index: &BlockIndex, sources: &[BlockSource]) -> Vec<Range<u64>> {
    let changed = index.numbers(sources, |source| source != BlockSource::Same);
    joined(changed.map(|number| index.range(number)))
}

/// Copy `ranges` from `patch` into the file open as `target`, and set the size of `patch`; holes stay holes.  The
/// result is on disk.  Fails with `CANCELED` after a stop.
pub fn patch(target: u32, patch: u32, ranges: &[Range<u64>], stop: &Stop) -> Result<()> {
    let apply = || {
        let (target, patch) = (change::reopen(target)?, call::reopen(patch)?);
        let size = call::status(patch.as_fd())?.size;
        change::set_size(target.as_fd(), size)?;
        for range in ranges {
            if stop.is_set() {
                return Err(Errno::CANCELED);
            }
            patch_range(target.as_fd(), patch.as_fd(), range.clone())?;
        }
        change::sync(target.as_fd())
    };
    apply().map_err(|errno| Error::new("write", b"", errno))
}

/// Reserve the space in `target`, unchanged, that `patch` with the same arguments needs.
///
/// # Errors
/// The file system has no space, or refuses.
pub fn reserve(target: u32, patch: u32, ranges: &[Range<u64>]) -> Result<()> {
    let apply = || {
        let (target, patch) = (change::reopen(target)?, call::reopen(patch)?);
        for range in ranges {
            let mut rest = range.clone();
            while let Some(data) = call::next_data(patch.as_fd(), rest.clone())? {
                change::reserve_range(target.as_fd(), data.clone())?;
                rest.start = data.end;
                if rest.is_empty() {
                    break;
                }
            }
        }
        Ok(())
    };
    apply().map_err(|errno| Error::new("write", b"", errno))
}

/// Copy the data of `range`, and make its holes.
fn patch_range(target: BorrowedFd<'_>, patch: BorrowedFd<'_>, range: Range<u64>) -> Outcome<()> {
    let mut rest = range;
    while rest.start < rest.end {
        let data = call::next_data(patch, rest.clone())?.unwrap_or(rest.end..rest.end);
        if rest.start < data.start {
            change::clear_range(target, rest.start..data.start)?;
        }
        if data.start < data.end {
            change::copy_range(target, patch, data.clone())?;
        }
        rest.start = data.end;
    }
    Ok(())
}

/// Return the numbers of the blocks that a range touches.
fn blocks_of(index: &BlockIndex, range: &Range<u64>) -> Range<usize> {
    let block = index.block_size();
    let number = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
    let end = number(range.end.div_ceil(block)).min(index.blocks().len());
    number(range.start / block)..end
}

/// An assembly in progress.
struct Work<'a> {
    target: OwnedFd,
    index: &'a BlockIndex,
    old: Option<OwnedFd>,
    partial: Option<OwnedFd>,
    copies: bool,
    block_sources: &'a [BlockSource],
    done: &'a AtomicU64,
    stop: &'a Stop,
}

impl Work<'_> {
    /// Clone or copy the equal blocks, then find the others; sets the size of the target.
    fn run(&self, threads: usize) -> Outcome<Assembled> {
        let mut assembled = Assembled {
            is_clone: self.clone(),
            ..Assembled::default()
        };
        change::set_size(self.target.as_fd(), self.index.size())?;
        let same = (self.index).numbers(self.block_sources, |source| source == BlockSource::Same);
        for range in joined(same.map(|number| self.index.range(number))) {
            if self.copies && !assembled.is_clone {
                self.copy(range.clone())?;
            }
            assembled.same += range.end - range.start;
        }
        let is_clone = assembled.is_clone;
        let next = AtomicUsize::new(0);
        let mut elsewhere = Vec::new();
        for part in workers::run(threads, || self.write_some(is_clone, &next)) {
            elsewhere.extend(part?);
        }
        elsewhere.sort_unstable_by_key(|(number, _)| *number);
        let mut missing = Vec::new();
        for (number, became) in elsewhere {
            let range = self.index.range(number);
            let size = range.end - range.start;
            match became {
                BlockResult::Found => assembled.found += size,
                BlockResult::Zeros => assembled.zeros += size,
                BlockResult::Missing => missing.push(number),
            }
        }
        let bytes = |numbers: &[usize]| {
            let ranges = numbers.iter().map(|number| self.index.range(*number));
            ranges.map(|range| range.end - range.start).sum::<u64>()
        };
        assembled.found += bytes(&missing);
        let missing = self.find_shifted(missing, threads)?;
        assembled.found -= bytes(&missing);
        let missing = missing.into_iter().map(|number| self.index.range(number));
        assembled.missing = joined(missing);
        Ok(assembled)
    }

    /// Write those of the blocks `missing` that are at other offsets; returns the others, all without an older
    /// version.
    fn find_shifted(&self, missing: Vec<usize>, threads: usize) -> Outcome<Vec<usize>> {
        let Some(old) = &self.old else {
            return Ok(missing);
        };
        let files = Files {
            old: old.as_fd(),
            target: self.target.as_fd(),
            index: self.index,
            block_sources: self.block_sources,
            done: self.done,
            stop: self.stop,
        };
        files.find_shifted(missing, threads)
    }

    /// Try to clone the older version, if it has equal blocks; true if the target shares its blocks.
    fn clone(&self) -> bool {
        let source = self
            .old
            .as_ref()
            .filter(|_| self.block_sources.contains(&BlockSource::Same));
        source.is_some_and(|old| change::clone(self.target.as_fd(), old.as_fd()).is_ok())
    }

    /// Copy `range` of the older version, if there is one, counting its bytes; holes stay holes.
    /// `CANCELED` after a stop.
    fn copy(&self, range: Range<u64>) -> Outcome<()> {
        const STEP: u64 = 64 << 20;
        let Some(old) = &self.old else { return Ok(()) };
        let mut rest = range;
        while let Some(data) = call::next_data(old.as_fd(), rest.clone())? {
            if self.stop.is_set() {
                return Err(Errno::CANCELED);
            }
            let step = data.start..data.end.min(data.start.saturating_add(STEP));
            self.count(step.end - rest.start);
            rest.start = step.end;
            change::copy_range(self.target.as_fd(), old.as_fd(), step)?;
            if rest.start >= rest.end {
                break;
            }
        }
        Ok(())
    }

    /// Write one of the other blocks after the other, until none is left; returns their numbers and results.
    fn write_some(&self, is_clone: bool, next: &AtomicUsize) -> Outcome<Vec<(usize, BlockResult)>> {
        let mut room = Vec::new();
        let mut some = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(source) = self.block_sources.get(number) else {
                return Ok(some);
            };
            if *source == BlockSource::Same {
                continue;
            }
            if self.stop.is_set() {
                return Err(Errno::CANCELED);
            }
            some.push((
                number,
                self.write_block(number, *source, is_clone, &mut room)?,
            ));
        }
    }

    /// Write the block `number` if the index proves it in `source` or in the rest of an interrupted run; zeros are a
    /// hole, which is made if the target `is_clone`.
    fn write_block(
        &self,
        number: usize,
        source: BlockSource,
        is_clone: bool,
        room: &mut Vec<u8>,
    ) -> Outcome<BlockResult> {
        let range = self.index.range(number);
        let size = range.end - range.start;
        if source == BlockSource::Zeros && self.is(number, &zeros_at(range.start, size)) {
            if is_clone {
                change::clear_range(self.target.as_fd(), range)?;
            }
            self.count(size);
            return Ok(BlockResult::Zeros);
        }
        let elsewhere = match (source, &self.old) {
            (BlockSource::Elsewhere(other), Some(old)) => {
                let begin = self.index.block_size().saturating_mul(other as u64);
                Some((old, begin..begin.saturating_add(size)))
            }
            _ => None,
        };
        let left = self.partial.as_ref().map(|file| (file, range.clone()));
        for (file, from) in elsewhere.into_iter().chain(left) {
            if read_proved(file.as_fd(), from, self.index, number, room) {
                change::write_at(self.target.as_fd(), range.start, room)?;
                self.count(size);
                return Ok(BlockResult::Found);
            }
        }
        Ok(BlockResult::Missing)
    }

    fn is(&self, number: usize, block: &Block) -> bool {
        let block_of_index = self.index.blocks().get(number);
        block_of_index.is_some_and(|block_of_index| block_of_index.value == block.value)
    }

    fn count(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Read `from` into `room`; true if that is block `number` of `index`, false if it is not or
/// cannot be read.
fn read_proved(
    file: BorrowedFd<'_>,
    from: Range<u64>,
    index: &BlockIndex,
    number: usize,
    room: &mut Vec<u8>,
) -> bool {
    room.resize(fit(from.end - from.start), 0);
    if call::read_all_at(file, from.start, room).is_err() {
        return false;
    }
    let mut hasher = BlockHasher::new(index.range(number).start);
    hasher.update(room);
    let expected = index.blocks().get(number);
    expected.is_some_and(|expected| expected.value == hasher.finish().value)
}

/// Merge ranges with those right before them.
fn joined(ranges: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut all: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match all.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => all.push(range),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_follow_each_other_are_one() {
        let ranges = [0..5, 5..7, 9..10, 10..12, 20..21];
        assert_eq!(joined(ranges.into_iter()), [0..7, 9..12, 20..21]);
        assert!(joined(std::iter::empty()).is_empty());
    }
}
