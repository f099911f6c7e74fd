//! Checks tables of digests after a crash, or with foreign content: a known digest
//! is right, and the next commit makes a complete table.
//!
//! Used by the fuzzers (`native/fuzz`) and by the test that repeats their inputs.

#[path = "../../../sys/src/temporary.rs"]
mod temporary;

use std::cell::RefCell;

use huai_git::crc::crc32;
use huai_tree::digests::{DigestTable, Digests};
use huai_tree::scan::directory::Directory;

use temporary::Folder;

/// The name of a target, and its function for one input.
pub(crate) type Target = (&'static str, fn(&[u8]));

/// All targets; `native/fuzz` has a program for each.
pub(crate) const TARGETS: [Target; 1] = [("digests", digests)];

/// The tables of a folder.
const TABLES: [&str; 3] = ["digests", "digests.left", "digests.new"];
const HEADER: &[u8; 16] = b"huai digests 1\n\0";
/// The bytes of a scanned record.
const RECORD: usize = 64;
const IDENTITY: usize = 40;
/// The bytes of a state in a table.
const STATE: usize = 112;
const DIGEST: usize = 32;

type Record = [u8; RECORD];

thread_local! {
    static FOLDER: RefCell<Folder> = RefCell::new(Folder::new());
}

/// Check that damaged tables give no wrong digest, and made-up ones no error: two bytes choose the
/// kind and the number of files, the rest is damage or content.
fn digests(data: &[u8]) {
    let Some(([kind, count], rest)) = data.split_first_chunk::<2>() else {
        return;
    };
    FOLDER.with_borrow_mut(|folder| {
        for name in TABLES {
            folder.remove(name);
        }
        if kind & 1 == 0 {
            let many = if kind & 2 == 0 { 1 } else { 40 };
            after_a_crash(folder, u32::from(*count) * many, kind >> 2, rest);
        } else {
            anything(folder, usize::from(*count), kind >> 1, rest);
        }
    });
}

/// Check that finished commits and a killed one leave nothing wrong.
fn after_a_crash(folder: &Folder, count: u32, kind: u8, damages: &[u8]) {
    let records: Vec<_> = (0..count).map(|number| record(number, 0)).collect();
    let later: Vec<_> = (0..count)
        .map(|number| record(number, number % 3))
        .collect();
    if kind & 1 != 0 {
        prove(folder, &records, true);
    }
    if kind & 2 != 0 {
        prove(folder, &later, kind & 4 != 0);
    }
    for damage in damages.chunks_exact(6).take(8) {
        hurt(folder, damage);
    }
    let scanned = if kind & 8 == 0 { records } else { later };
    prove(folder, &scanned, true);
    assert_eq!(prove(folder, &scanned, true), 0);
}

/// Check tables of any states in valid blocks, with a tail.
fn anything(folder: &Folder, count: usize, kind: u8, states: &[u8]) {
    let (first, rest) = states.split_at(states.len().min(count * STATE));
    let parts = [first, rest, states];
    for (number, (name, part)) in TABLES.iter().zip(parts).enumerate() {
        let (whole, tail) = part.split_at(part.len() / STATE * STATE);
        if kind >> number & 1 != 0 {
            let count = u32::try_from(whole.len() / STATE).unwrap();
            let block = [
                &count.to_le_bytes(),
                &crc32(whole).to_le_bytes(),
                whole,
                tail,
            ];
            folder.write(name, &[&HEADER[..], &block.concat()].concat());
        } else {
            folder.write(name, part);
        }
    }
    let records: Vec<_> = states.chunks_exact(STATE).map(as_seen).collect();
    commit(folder, &records, true);
}

/// Return the record of the file of a state.
fn as_seen(state: &[u8]) -> Record {
    let mut record = [0; RECORD];
    record[..IDENTITY + 4].copy_from_slice(&state[..IDENTITY + 4]);
    record
}

/// Make a file with one name, whose digest identifies it.
fn record(number: u32, edited: u32) -> Record {
    let mut record = [0; RECORD];
    record[..8].copy_from_slice(&1_u64.to_le_bytes());
    record[8..12].copy_from_slice(&number.to_le_bytes());
    record[IDENTITY - 8..IDENTITY - 4].copy_from_slice(&edited.to_le_bytes());
    record[IDENTITY] = 1;
    record
}

/// Return the digest of a file, made of its inode, size and times.
fn digest(record: &Record) -> [u8; DIGEST] {
    let mut digest = [7; DIGEST];
    for (to, from) in digest.iter_mut().zip(&record[8..IDENTITY]) {
        *to ^= from;
    }
    digest
}

/// Commit these files; returns the number of hashed ones, and all digests.
fn commit(folder: &Folder, records: &[Record], is_finished: bool) -> (usize, Vec<u8>) {
    let mut digests = Digests::open(folder.path(), &[]).unwrap();
    let directory = Directory {
        leaves: b"name\t0\t0\n".to_vec(),
        identities: records.as_flattened().to_vec(),
        inode: 1,
        device: 1,
        file_system: 1,
        ..Directory::default()
    };
    let doubts = digests.look_up(&[&directory]).unwrap();
    let read = |(_, number): (usize, usize)| Some((None, digest(&records[number])));
    let results: Vec<_> = doubts.iter().map(|doubt| read(doubt.place)).collect();
    let columns = digests.settle(&results).unwrap();
    assert_eq!(columns[0].len(), records.len() * DIGEST);
    if is_finished {
        digests.finish().unwrap();
    } else {
        digests.flush().unwrap();
    }
    (doubts.len(), columns.concat())
}

/// Commit these files, checking the digests; returns the number of hashed ones.
fn prove(folder: &Folder, records: &[Record], is_finished: bool) -> usize {
    let (doubts, column) = commit(folder, records, is_finished);
    for (record, found) in records.iter().zip(column.chunks_exact(DIGEST)) {
        assert_eq!(found, digest(record), "{record:?}");
    }
    doubts
}

/// Cut a table, overwrite it partly with zeros, or remove it.
fn hurt(folder: &Folder, damage: &[u8]) {
    let name = TABLES[usize::from(damage[0]) % TABLES.len()];
    let Some(mut bytes) = folder.read_if_there(name) else {
        return;
    };
    let scale = if damage[1] & 4 == 0 { 1 } else { 64 };
    let number = |at: usize| usize::from(u16::from_le_bytes([damage[at], damage[at + 1]]));
    let place = number(2) * scale % (bytes.len() + 1);
    match damage[1] & 3 {
        0 => return folder.remove(name),
        1 => bytes.truncate(place),
        _ => {
            let end = bytes.len().min(place + number(4));
            bytes[place..end].fill(0);
        }
    }
    folder.write(name, &bytes);
}
