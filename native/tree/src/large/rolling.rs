//! Finds blocks at any offset by a rolling CRC-32.
//!
//! CRC-32 is linear: as a window moves by one byte, one table removes the byte that leaves,
//! and another adds the byte that enters.  An equal checksum does not prove equal content.

use std::array;
use std::collections::HashMap;

use huai_git::crc::crc32;

/// The offsets that are checked in parallel: each checksum depends on the one before it.
const LANES: usize = 4;
/// The most hits of one search: crafted checksums could make all offsets match.
const HITS: usize = 256;
/// The length of the filter in words of 64 bits: it stays in the cache of a core.
const WORDS: usize = 1 << 14;

/// The checksums of blocks of one size, with the numbers of the blocks.
#[derive(Debug)]
pub(crate) struct Rolling {
    window: usize,
    wanted: HashMap<u32, Vec<usize>>,
    filter: Filter,
    enter: Box<[u32; 256]>,
    leave: Box<[u32; 256]>,
    zeros: u32,
}

/// A possible place of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hit {
    /// The offset in the searched bytes.
    pub(crate) place: usize,
    /// The checksum there.
    pub(crate) checksum: u32,
}

impl Rolling {
    /// Search for blocks of `window` bytes, at least one: their numbers and checksums.
    pub(crate) fn new(window: usize, wanted: impl IntoIterator<Item = (usize, u32)>) -> Self {
        let mut blocks: HashMap<u32, Vec<usize>> = HashMap::new();
        for (number, checksum) in wanted {
            blocks.entry(checksum).or_default().push(number);
        }
        let mut bytes = vec![0; window + 1];
        let leave = table(|byte| linear(&mut bytes, byte));
        let zeros = crc32(&bytes[1..]);
        let mut filter = Filter::new();
        for checksum in blocks.keys() {
            filter.add(checksum ^ zeros);
        }
        Self {
            window,
            wanted: blocks,
            filter,
            enter: table(|byte| linear(&mut [0], byte)),
            leave,
            zeros,
        }
    }

    /// Return the blocks with this checksum.
    pub(crate) fn blocks(&self, checksum: u32) -> &[usize] {
        self.wanted.get(&checksum).map_or(&[], Vec::as_slice)
    }

    /// Return possible places of blocks in `bytes`, in order; at most `HITS`.
    pub(crate) fn search(&self, bytes: &[u8]) -> Vec<Hit> {
        let places = (bytes.len() + 1).saturating_sub(self.window);
        let lane = places / LANES;
        let mut hits = Vec::new();
        self.search_lanes::<LANES>(bytes, 0, lane, &mut hits);
        self.search_lanes::<1>(bytes, lane * LANES, places - lane * LANES, &mut hits);
        hits.sort_unstable_by_key(|hit| hit.place);
        hits
    }

    /// Search `lane` offsets in each of `N` lanes, from `begin` on.
    fn search_lanes<const N: usize>(
        &self,
        bytes: &[u8],
        begin: usize,
        lane: usize,
        hits: &mut Vec<Hit>,
    ) {
        let Some(steps) = lane.checked_sub(1) else {
            return;
        };
        let cut = |from: usize, size| &bytes[from..from + size];
        let places: [usize; N] = array::from_fn(|number| begin + number * lane);
        let mut sums = places.map(|place| crc32(cut(place, self.window)) ^ self.zeros);
        for (sum, place) in sums.iter().zip(places) {
            self.add_hit(*sum, place, hits);
        }
        let leaving = places.map(|place| cut(place, steps));
        let entering = places.map(|place| cut(place + self.window, steps));
        let (enter, leave, filter) = (&*self.enter, &*self.leave, &self.filter);
        for step in 0..steps {
            for lane in 0..N {
                let [low, ..] = sums[lane].to_le_bytes();
                let (gone, come) = (leaving[lane][step], entering[lane][step]);
                let sum =
                    enter[usize::from(low ^ come)] ^ (sums[lane] >> 8) ^ leave[usize::from(gone)];
                sums[lane] = sum;
                if filter.may_have(sum) {
                    self.add_hit(sum, places[lane] + step + 1, hits);
                }
            }
        }
    }

    /// Add a hit if a block has this checksum, unless there are too many.
    #[cold]
    fn add_hit(&self, sum: u32, place: usize, hits: &mut Vec<Hit>) {
        let checksum = sum ^ self.zeros;
        if hits.len() < HITS && self.wanted.contains_key(&checksum) {
            hits.push(Hit { place, checksum });
        }
    }
}

/// A filter that quickly rejects most other checksums.
#[derive(Debug)]
struct Filter(Vec<u64>);

impl Filter {
    fn new() -> Self {
        Self(vec![0; WORDS])
    }

    fn add(&mut self, sum: u32) {
        self.0[sum as usize / 64 % WORDS] |= 1 << (sum % 64);
    }

    fn may_have(&self, sum: u32) -> bool {
        self.0[sum as usize / 64 % WORDS] >> (sum % 64) & 1 == 1
    }
}

/// Return the bits that change in the checksum of `bytes`, all zeros, if the first byte is `first`; leaves `bytes` as they were.
fn linear(bytes: &mut [u8], first: u8) -> u32 {
    let zeros = crc32(bytes);
    if let Some(byte) = bytes.first_mut() {
        *byte = first;
    }
    let sum = crc32(bytes) ^ zeros;
    if let Some(byte) = bytes.first_mut() {
        *byte = 0;
    }
    sum
}

/// Return the table of a linear function of a byte, from its value for each bit.
fn table(mut value: impl FnMut(u8) -> u32) -> Box<[u32; 256]> {
    let bits: Vec<u32> = (0..8).map(|bit| value(1 << bit)).collect();
    let mut all = Box::new([0; 256]);
    for (byte, sum) in all.iter_mut().enumerate() {
        let set = bits
            .iter()
            .enumerate()
            .filter(|(bit, _)| byte >> bit & 1 == 1);
        *sum = set.fold(0, |sum, (_, bit)| sum ^ bit);
    }
    all
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_window_is_looked_at(bytes in proptest::collection::vec(0..3_u8, 0..60), window in 1..9_usize) {
            let windows: Vec<_> = bytes.windows(window).map(crc32).collect();
            for chosen in &windows {
                let rolling = Rolling::new(window, [(7, *chosen)]);
                let expected = windows.iter().enumerate().filter(|(_, sum)| *sum == chosen);
                let expected: Vec<_> = expected.map(|(place, sum)| Hit { place, checksum: *sum }).collect();
                prop_assert_eq!(rolling.search(&bytes), expected);
                prop_assert_eq!(rolling.blocks(*chosen), [7]);
            }
        }

        #[test]
        fn a_block_is_found_wherever_it_stands(
            block in proptest::collection::vec(any::<u8>(), 100..300), before in 0..2000_usize, after in 0..2000_usize
        ) {
            let bytes = [vec![1; before], block.clone(), vec![2; after]].concat();
            let other_blocks = (0..500_usize).map(|number| (number, crc32(&number.to_le_bytes())));
            let rolling = Rolling::new(block.len(), other_blocks.chain([(500, crc32(&block))]));
            let hit = Hit { place: before, checksum: crc32(&block) };
            prop_assert!(rolling.search(&bytes).contains(&hit));
        }
    }

    #[test]
    fn blocks_of_one_checksum_are_all_named() {
        let sum = crc32(b"same");
        let rolling = Rolling::new(4, [(3, sum), (1, crc32(b"else")), (9, sum)]);
        assert_eq!(rolling.blocks(sum), [3, 9]);
        assert!(rolling.blocks(sum ^ 1).is_empty());
        assert_eq!(rolling.search(b"no"), []);
    }
}
