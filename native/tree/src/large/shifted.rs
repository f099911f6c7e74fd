//! Finds blocks of a new file at any other offset of its older version, as after bytes were
//! inserted or removed.
//!
//! The unused part of the older version is read once.  After a found block, the
//! next one is expected to follow, and the same shift is tried elsewhere; only the rest
//! is searched byte by byte (`rolling`).  A sample is searched first, so that files with nothing in
//! common cost no more.
//!
//! Rules to keep: a block counts only if its chaining value proves it, and failed proofs
//! cost no more than the reading, whatever checksums an index names.

use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};

use huai_format::content::block_index::{BlockHasher, BlockIndex, BlockSource};
use huai_git::bug::fit;
use huai_git::crc::crc32;
use huai_sys::call::{self, Outcome};
use huai_sys::change;
use huai_sys::error::Errno;
use huai_sys::stop::Stop;
use huai_sys::workers;

use super::rolling::Rolling;

/// The fewest missing blocks for which the file is read.
const LEAST: usize = 16;
/// The most blocks that are searched byte by byte; of more, every other one or fewer.
const MOST: u64 = 4096;
/// The number of checksums: in this many bytes, each block seems to occur once by
/// chance, and is read in vain.
const CHANCE: u64 = 1 << 32;
/// The largest blocks that are searched: those of files below 16 TiB.
const LARGEST: u64 = 16 << 20;
/// The blocks that a thread searches at a time.
const PIECE: u64 = 16;
/// The bytes that are searched first, at least: one piece in `STRIDE`.
const SAMPLE: u64 = 256 << 20;
const STRIDE: u64 = 16;
/// The shift before any block was found.
const NONE: i64 = i64::MIN;

/// The files of a search.
pub(crate) struct Files<'a> {
    pub(crate) old: BorrowedFd<'a>,
    pub(crate) target: BorrowedFd<'a>,
    pub(crate) index: &'a BlockIndex,
    pub(crate) block_sources: &'a [BlockSource],
    /// Counts bytes.
    pub(crate) done: &'a AtomicU64,
    pub(crate) stop: &'a Stop,
}

impl Files<'_> {
    /// Write those of the blocks `missing` that occur in the unused part of the old file; returns the others.  Few
    /// missing blocks, or too large ones, are not searched, nor the rest if a sample has none.
    pub(crate) fn find_shifted(&self, missing: Vec<usize>, threads: usize) -> Outcome<Vec<usize>> {
        let block = self.index.block_size();
        let size = call::status(self.old)?.size;
        if missing.len() < LEAST || block > LARGEST || size < block {
            return Ok(missing);
        }
        let pieces = self.pieces(size)?;
        let search = Search::new(self, &missing, size);
        let all = pieces
            .iter()
            .map(|piece| piece.end - piece.start)
            .sum::<u64>();
        let stride: usize = fit((all / SAMPLE).clamp(1, STRIDE));
        let (sample, rest): (Vec<_>, Vec<_>) =
            (pieces.into_iter().enumerate()).partition(|(number, _)| number % stride == 0);
        search.run(&sample, threads)?;
        if search.shift.load(Ordering::Relaxed) != NONE {
            search.run(&rest, threads)?;
        }
        let is_missing = |number: &usize| !search.is_found(*number);
        Ok(missing.into_iter().filter(is_missing).collect())
    }

    /// Return the offsets of the old file at which a block may begin, as pieces that touch unused
    /// data.
    fn pieces(&self, size: u64) -> Outcome<Vec<Range<u64>>> {
        let block = self.index.block_size();
        let mut used = vec![false; fit(size.div_ceil(block))];
        for (number, source) in self.block_sources.iter().enumerate() {
            let other = match source {
                BlockSource::Same => number,
                BlockSource::Elsewhere(other) => *other,
                BlockSource::Zeros | BlockSource::Unknown => continue,
            };
            if let Some(used) = used.get_mut(other) {
                *used = true;
            }
        }
        let mut pieces: Vec<Range<u64>> = Vec::new();
        let free = (0..).zip(used).filter(|(_, used)| !used);
        for begin in free.map(|(number, _): (u64, bool)| number * block) {
            let mut rest = begin..size.min(begin + block);
            while let Some(data) = call::next_data(self.old, rest.clone())? {
                let first = data.start.saturating_sub(block - 1);
                add_pieces(
                    &mut pieces,
                    first..data.end.min(size - block + 1),
                    PIECE * block,
                );
                rest.start = data.end;
                if rest.start >= rest.end {
                    break;
                }
            }
        }
        Ok(pieces)
    }
}

/// Add the part of `range` after the last piece as pieces of at most `most` bytes.
fn add_pieces(pieces: &mut Vec<Range<u64>>, range: Range<u64>, most: u64) {
    let mut begin = range.start;
    if let Some(last) = pieces.last_mut() {
        begin = begin.max(last.end);
        if begin == last.end {
            let end = range.end.min(last.start + most).max(last.end);
            begin = end;
            last.end = end;
        }
    }
    while begin < range.end {
        let end = range.end.min(begin + most);
        pieces.push(begin..end);
        begin = end;
    }
}

/// The state that threads share.
struct Search<'a> {
    files: &'a Files<'a>,
    rolling: Rolling,
    /// True by number for blocks that were found or are not missing.
    found: Vec<AtomicBool>,
    size: u64,
    /// The offset in the old file minus that in the new one, of the last block that was found.
    shift: AtomicI64,
    /// The bytes that were searched, and the bytes of failed proofs.
    searched: AtomicU64,
    failed: AtomicU64,
}

impl<'a> Search<'a> {
    /// Search for the blocks `wanted` in the old file of `size` bytes; of too many, byte by byte only for some.
    fn new(files: &'a Files<'a>, wanted: &[usize], size: u64) -> Self {
        let blocks = files.index.blocks();
        let is_found: Vec<_> = blocks.iter().map(|_| AtomicBool::new(true)).collect();
        for is_found in wanted.iter().filter_map(|number| is_found.get(*number)) {
            is_found.store(false, Ordering::Relaxed);
        }
        let block = files.index.block_size();
        let most: usize = fit(MOST.min(CHANCE / block));
        let some = wanted.iter().step_by(wanted.len().div_ceil(most).max(1));
        let some = some.filter(|number| files.index.is_full(**number));
        let some = some.filter_map(|number| Some((*number, blocks.get(*number)?.checksum)));
        let window: usize = fit(block);
        Self {
            files,
            rolling: Rolling::new(window, some),
            found: is_found,
            size,
            shift: AtomicI64::new(NONE),
            searched: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }

    /// Search all `pieces`; found blocks are written.  Ends when proofs failed too often; `CANCELED` after a stop.
    fn run(&self, pieces: &[(usize, Range<u64>)], threads: usize) -> Outcome<()> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut reader = SequentialReader::new(self.files.old);
            while let Some((_, piece)) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
                self.search(piece.clone(), &mut reader)?;
            }
            Ok(())
        };
        workers::run(threads, work).into_iter().collect()
    }

    fn is_found(&self, number: usize) -> bool {
        let flag = self.found.get(number);
        flag.is_none_or(|flag| flag.load(Ordering::Relaxed))
    }

    /// Search and write all blocks that begin in `piece`, until proofs failed too often.
    fn search(&self, piece: Range<u64>, reader: &mut SequentialReader<'_>) -> Outcome<()> {
        let block = self.files.index.block_size();
        let (mut place, mut next) = (piece.start, None);
        if let Some((begin, number)) = self.hint(piece.start) {
            if begin < piece.end && self.prove_next(begin, number, reader)? {
                (place, next) = (begin + block, Some(number + 1));
            }
        }
        while place < piece.end && !self.is_over()? {
            if let Some(number) = next.take() {
                if self.prove_next(place, number, reader)? {
                    (place, next) = (place + block, Some(number + 1));
                    continue;
                }
            }
            let span = block.min(piece.end - place);
            self.searched.fetch_add(span, Ordering::Relaxed);
            let proved = match self.prove_first(place, reader)? {
                None => self.roll(place..place + span, reader)?,
                proved => proved,
            };
            (place, next) = match proved {
                Some((begin, number)) => (begin + block, Some(number + 1)),
                None => (place + span, None),
            };
        }
        if let Some(number) = next {
            self.prove(place, number, reader)?; // the last one of the file may be shorter
        }
        Ok(())
    }

    /// Write the block right at `place`, where a search begins, and return its place and number; `None` without one.
    fn prove_first(
        &self,
        place: u64,
        reader: &mut SequentialReader<'_>,
    ) -> Outcome<Option<(u64, usize)>> {
        let block = self.files.index.block_size();
        let checksum = crc32(reader.read(place..place + block));
        let number = self.prove_one(place, checksum, reader)?;
        Ok(number.map(|number| (place, number)))
    }

    /// Write the first block that begins in `places`, and return its place and number; `None` without
    /// one.
    fn roll(
        &self,
        places: Range<u64>,
        reader: &mut SequentialReader<'_>,
    ) -> Outcome<Option<(u64, usize)>> {
        let block = self.files.index.block_size();
        let hits = self
            .rolling
            .search(reader.read(places.start..places.end + block - 1));
        for hit in hits {
            let begin = places.start + hit.place as u64;
            if let Some(number) = self.prove_one(begin, hit.checksum, reader)? {
                return Ok(Some((begin, number)));
            }
        }
        Ok(None)
    }

    /// Return true if proofs failed too often; an error after a stop.
    fn is_over(&self) -> Outcome<bool> {
        if self.files.stop.is_set() {
            return Err(Errno::CANCELED);
        }
        let block = self.files.index.block_size();
        let most = self.searched.load(Ordering::Relaxed).saturating_mul(2);
        Ok(self.failed.load(Ordering::Relaxed) > most.saturating_add(64 * block))
    }

    /// Return place and number of the first block from `begin` on if it has the last shift; `None` before a block was
    /// found.
    fn hint(&self, begin: u64) -> Option<(u64, usize)> {
        let shift = self.shift.load(Ordering::Relaxed);
        if shift == NONE {
            return None;
        }
        let block = self.files.index.block_size();
        let target = begin.saturating_add_signed(shift.checked_neg()?);
        let number = target.div_ceil(block);
        let place = (number * block).checked_add_signed(shift)?;
        Some((place, usize::try_from(number).ok()?)).filter(|_| place >= begin)
    }

    /// Return true if the block `number` is at `place`; then it and equal ones are written.
    fn prove_next(
        &self,
        place: u64,
        number: usize,
        reader: &mut SequentialReader<'_>,
    ) -> Outcome<bool> {
        let is_there = self.prove(place, number, reader)?;
        let block = self.files.index.blocks().get(number);
        if let Some(block) = block.filter(|_| is_there) {
            self.prove_one(place, block.checksum, reader)?;
        }
        Ok(is_there)
    }

    /// Write the missing blocks with this checksum that are at `place`; returns the last of them, or a block that was found
    /// before and is most likely there too; `None` if a proof fails.
    fn prove_one(
        &self,
        place: u64,
        checksum: u32,
        reader: &mut SequentialReader<'_>,
    ) -> Outcome<Option<usize>> {
        let blocks = self.rolling.blocks(checksum);
        let mut proved = None;
        for number in blocks.iter().filter(|number| !self.is_found(**number)) {
            if self.is_over()? || !self.prove(place, *number, reader)? {
                return Ok(proved);
            }
            proved = Some(*number);
        }
        // A block that was found before is most likely here too.
        Ok(proved.or(blocks.last().copied()))
    }

    /// Return true if the bytes at `place` are the block `number`; writes them to the target unless they were found before.
    fn prove(&self, place: u64, number: usize, reader: &mut SequentialReader<'_>) -> Outcome<bool> {
        let Files { index, .. } = self.files;
        let (range, wanted) = (index.range(number), index.blocks().get(number));
        let size = range.end - range.start;
        let Some(wanted) = wanted.filter(|_| place.saturating_add(size) <= self.size) else {
            return Ok(false);
        };
        let bytes = reader.read(place..place + size);
        let mut hasher = BlockHasher::new(range.start);
        hasher.update(bytes);
        if hasher.finish().value != wanted.value {
            self.failed.fetch_add(size, Ordering::Relaxed);
            return Ok(false);
        }
        self.searched.fetch_add(size, Ordering::Relaxed);
        let is_known = (self.found.get(number)).is_none_or(|it| it.swap(true, Ordering::Relaxed));
        if !is_known {
            change::write_at(self.files.target, range.start, bytes)?;
            self.files.done.fetch_add(size, Ordering::Relaxed);
        }
        let shift = i64::try_from(place)
            .ok()
            .zip(i64::try_from(range.start).ok());
        if let Some((place, start)) = shift {
            self.shift.store(place - start, Ordering::Relaxed);
        }
        Ok(true)
    }
}

/// A sequential reader that keeps the last bytes.
struct SequentialReader<'a> {
    file: BorrowedFd<'a>,
    start: u64,
    bytes: Vec<u8>,
}

impl<'a> SequentialReader<'a> {
    fn new(file: BorrowedFd<'a>) -> Self {
        Self {
            file,
            start: 0,
            bytes: Vec::new(),
        }
    }

    /// Return the bytes in `range`; none if unreadable.
    fn read(&mut self, range: Range<u64>) -> &[u8] {
        let size = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(0);
        let skip = range.start.checked_sub(self.start);
        let skip = skip.and_then(|skip| usize::try_from(skip).ok());
        match skip.filter(|skip| *skip < self.bytes.len()) {
            Some(skip) if self.bytes.len() - skip >= size => {
                return self.bytes.get(skip..skip + size).unwrap_or_default();
            }
            Some(skip) => {
                self.bytes.copy_within(skip.., 0);
                self.bytes.truncate(self.bytes.len() - skip);
            }
            None => self.bytes.clear(),
        }
        self.start = range.start;
        let length = self.bytes.len();
        self.bytes.resize(size, 0);
        let room = &mut self.bytes[length..];
        if call::read_all_at(self.file, range.start + length as u64, room).is_err() {
            self.bytes.clear();
        }
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, OwnedFd};

    use huai_format::content::block_index::Block;
    use rustix::fs::MemfdFlags;

    use super::*;

    const BLOCK: u64 = 64 << 10;

    fn memory(bytes: &[u8]) -> OwnedFd {
        let file = rustix::fs::memfd_create("test", MemfdFlags::CLOEXEC).unwrap();
        change::write_at(file.as_fd(), 0, bytes).unwrap();
        file
    }

    #[test]
    fn checksums_that_seem_to_stand_everywhere_cost_little() {
        let count = 64;
        let old = vec![0; count * (64 << 10)];
        let checksum = crc32(&old[..64 << 10]);
        let value = [1; 32];
        let blocks = vec![Block { value, checksum }; count];
        let (file, target) = (memory(&old), memory(&[]));
        let files = Files {
            old: file.as_fd(),
            target: target.as_fd(),
            index: &BlockIndex::new(old.len() as u64, BLOCK, blocks).unwrap(),
            block_sources: &vec![BlockSource::Unknown; count],
            done: &AtomicU64::new(0),
            stop: &Stop::default(),
        };
        let all: Vec<_> = (0..count).collect();
        let search = Search::new(&files, &all, old.len() as u64);
        search
            .run(&[(0, 0..old.len() as u64 - BLOCK + 1)], 1)
            .unwrap();
        let failed = search.failed.load(Ordering::Relaxed);
        assert!(failed > 64 * BLOCK);
        assert!(failed <= 2 * old.len() as u64 + 66 * BLOCK);
        assert_eq!(files.find_shifted(all.clone(), 1).unwrap(), all);
    }

    #[test]
    fn pieces_follow_each_other_and_overlap_nowhere() {
        let mut pieces = Vec::new();
        for range in [0..5, 3..12, 12..13, 20..41, 30..35] {
            add_pieces(&mut pieces, range, 10);
        }
        assert_eq!(pieces, [0..10, 10..13, 20..30, 30..40, 40..41]);
    }
}
