//! Checks files that arrived in a folder against their metadata.

use std::collections::HashMap;

use huai_sys::stop::Stop;
use huai_tree::publish::{Attributes, Mode};
use huai_tree::stage::verify::{Arrival, FileMetadata, Run, VerifyRequest, comparable, verify};

use crate::world::{World, users};

const SECOND: u64 = 1_000_000_000;
/// The time of the wanted file, and that time as a peer without nanoseconds sends it.
const TIME: u64 = 5 * SECOND + 7;
const WHOLE: u64 = 5 * SECOND;

use Arrival::{Arrived, Finished, Mismatch, Missing};

/// The entry, its time, and the result without a digest, with one, and with attributes.
const CASES: [(&str, &[&str], u64, [Arrival; 3]); 13] = [
    (
        "the file",
        &["d 755 area/d", "f 644 area/d/f new"],
        TIME,
        [Arrived, Arrived, Finished],
    ),
    (
        "whole seconds",
        &["d 755 area/d", "f 644 area/d/f new"],
        WHOLE,
        [Arrived, Arrived, Finished],
    ),
    (
        "other time",
        &["d 755 area/d", "f 644 area/d/f new"],
        TIME + 1,
        [Mismatch; 3],
    ),
    (
        "other size",
        &["d 755 area/d", "f 644 area/d/f newer"],
        TIME,
        [Mismatch; 3],
    ),
    (
        "other content",
        &["d 755 area/d", "f 644 area/d/f old"],
        TIME,
        [Arrived, Mismatch, Mismatch],
    ),
    ("nothing", &["d 755 area/d"], 0, [Missing; 3]),
    ("no directory", &[], 0, [Missing; 3]),
    (
        "a directory",
        &["d 755 area/d", "d 755 area/d/f"],
        0,
        [Mismatch; 3],
    ),
    (
        "a symlink",
        &["d 755 area/d", "l area/d/f ../real", "f 644 area/real new"],
        0,
        [Mismatch; 3],
    ),
    ("a fifo", &["d 755 area/d", "p area/d/f"], 0, [Mismatch; 3]),
    ("a file above", &["f 644 area/d new"], 0, [Mismatch; 3]),
    (
        "a symlink above",
        &["d 755 area/real", "f 644 area/real/f new", "l area/d real"],
        0,
        [Mismatch; 3],
    ),
    (
        "a closed file",
        &["d 755 area/d", "f 0 area/d/f new"],
        TIME,
        [Arrived, Mismatch, Mismatch],
    ),
];

fn request(mtime: u64, digest: bool, finish: bool) -> VerifyRequest {
    let mtime = i64::try_from(mtime).unwrap();
    VerifyRequest {
        wanted: FileMetadata {
            path: b"d/f".into(),
            size: 3,
            mtime,
            mode: 0o644,
            digest: digest.then(|| *blake3::hash(b"new").as_bytes()),
        },
        attributes: finish.then_some(Attributes {
            user: None,
            group: None,
            mode: Mode::Exact(0o444),
            mtime,
        }),
    }
}

fn run(cut: bool, placed: &[(&str, u64)]) -> Run {
    let placed = placed
        .iter()
        .map(|(path, inode)| (path.as_bytes().to_vec(), *inode));
    Run {
        cut,
        placed: placed.collect::<HashMap<_, _>>(),
    }
}

/// Verify the file in the area of a world.
fn verified(world: &World, asked: VerifyRequest, run: &Run) -> Arrival {
    let folder = world.at("area").into_os_string().into_encoded_bytes();
    world.run(|| verify(&folder, &[asked], run, 2, &Stop::default()).unwrap())[0]
}

#[test]
fn what_arrived_is_the_file_or_is_refused() {
    for user in users() {
        for (name, entries, mtime, expected) in CASES {
            for (number, expected) in expected.into_iter().enumerate() {
                let world = World::new(*user, entries.iter().copied());
                if mtime > 0 {
                    world.age("area/d/f", mtime);
                }
                let arrival = verified(
                    &world,
                    request(TIME, number > 0, number > 1),
                    &run(false, &[]),
                );
                let expected = match expected {
                    Mismatch if name == "a closed file" && user.number() == 0 => {
                        [Arrived, Finished][number - 1]
                    }
                    expected => expected,
                };
                assert_eq!(arrival, expected, "{user:?} {name} {number}");
                if arrival == Finished {
                    assert_eq!(world.shown_at("area/d/f"), "f 444 new");
                }
            }
        }
    }
}

#[test]
fn what_was_laid_there_or_is_partial_has_not_arrived() {
    for user in users() {
        for (cut, placed, mtime, digest, expected) in [
            (false, Some(("d/f", 0)), TIME, true, Missing),
            (false, Some(("d/f", 1)), TIME, true, Arrived),
            (false, Some(("d/other", 0)), TIME, true, Arrived),
            (true, None, 7, false, Mismatch),
            (true, None, 7, true, Arrived),
            (true, None, TIME, false, Arrived),
            (false, None, 7, false, Arrived),
        ] {
            let world = World::new(*user, ["d 755 area/d", "f 644 area/d/f new"]);
            world.age("area/d/f", mtime);
            let inode = world.inode("area/d/f");
            let placed = placed.map(|(path, further)| (path, inode + further));
            let placed = placed.as_slice();
            let arrival = verified(&world, request(mtime, digest, false), &run(cut, placed));
            assert_eq!(arrival, expected, "{cut} {placed:?} {mtime} {digest}");
        }
    }
}

#[test]
fn files_are_compared_if_they_are_large_and_there_with_only_directories_above() {
    const FILES: [(&[u8], u64); 4] = [(b"d/f", 9), (b"d/e/f", 9), (b"d/small", 8), (b"g", 9)];
    for (entries, few, expected) in [
        (&["d 755 area/d", "f 644 area/d/f new"][..], 0, &[0][..]),
        (&["d 755 area/d", "f 644 area/d/f new"], 3, &[0]),
        (&["d 755 area/d", "f 644 area/d/f new"], 4, &[0, 1, 2, 3]),
        (&["f 644 area/g new"], 4, &[0, 1, 2, 3]),
        (&["d 755 area/d", "f 644 area/d/small new"], 9, &[]),
        (&["d 755 area/d"], 9, &[]),
        (&[], 9, &[]),
        (&["d 755 area/d", "l area/d/f ../g", "d 755 area/g"], 9, &[]),
        (&["d 755 area/d", "d 755 area/d/f"], 9, &[]),
        (
            &["d 755 area/d", "f 644 area/d/e x", "f 644 area/g new"],
            2,
            &[3],
        ),
        (
            &["d 755 area/d", "f 644 area/d/e x", "f 644 area/g new"],
            9,
            &[0, 2, 3],
        ),
        (&["f 644 area/d new", "f 644 area/g new"], 9, &[3]),
        (
            &["l area/d .", "f 644 area/f new", "f 644 area/g new"],
            9,
            &[3],
        ),
    ] {
        for user in users() {
            let world = World::new(*user, entries.iter().copied());
            let folder = world.at("area").into_os_string().into_encoded_bytes();
            let stop = Stop::default();
            let positions =
                world.run(|| comparable(&folder, FILES.into_iter(), 8, few, &stop).unwrap());
            assert_eq!(positions, expected, "{entries:?} {few}");
        }
    }
}

#[test]
fn a_stop_judges_nothing() {
    let world = World::new(users()[0], ["d 755 area/d", "f 644 area/d/f new"]);
    let folder = world.at("area").into_os_string().into_encoded_bytes();
    let stop = Stop::default();
    stop.set();
    assert!(
        verify(
            &folder,
            &[request(TIME, true, true)],
            &run(false, &[]),
            1,
            &stop
        )
        .is_err()
    );
    assert!(comparable(&folder, [(&b"d/f"[..], 1)].into_iter(), 0, 1, &stop).is_err());
}
