//! Checks the stored digests: right, private, and ignored where damaged.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests make and damage what the crate works on"
)]

#[path = "../../sys/src/temporary.rs"]
mod temporary;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use huai_format::entries::Digest;
use huai_sys::error::Errno;
use huai_tree::digests::{DigestTable, Digests};
use huai_tree::scan::directory::Directory;

use temporary::Folder;

const DIGEST: Digest = [1; 32];
const OTHER: Digest = [2; 32];
const BIRTH: i64 = 11;
/// The files of a full block of the table.
const BLOCK: usize = 4096;
const BLOCK_BYTES: usize = BLOCK * 112;

/// A scanned file.
#[derive(Debug, Clone, Copy, PartialEq)]
struct ScannedFile {
    device: u64,
    inode: u64,
    size: i64,
    mtime: i64,
    ctime: i64,
    links: u32,
    mode: u32,
    user: u32,
    group: u32,
    folder: u64,
    name: u32,
    file_system: u64,
    /// The device of its directory, if it is another one.
    directory_device: Option<u64>,
}

const ONE: ScannedFile = ScannedFile {
    device: 1,
    inode: 2,
    size: 3,
    mtime: 4,
    ctime: 5,
    links: 1,
    mode: 0o644,
    user: 0,
    group: 0,
    folder: 7,
    name: 0,
    file_system: 0,
    directory_device: None,
};
const MOUNTED: ScannedFile = ScannedFile {
    file_system: (1 << 63) + 5,
    ..ONE
};

impl ScannedFile {
    /// Make a directory with only this file, after a symlink's line.
    fn directory(&self) -> Directory {
        let before = &b"link\t>target\t1\n"[..];
        let name = if self.name == 0 {
            "name"
        } else {
            &format!("name{}", self.name)
        };
        let line = format!("{name}\t3\t4\n");
        let mut record = Vec::new();
        for number in [self.device, self.inode] {
            record.extend(number.to_le_bytes());
        }
        for number in [self.size, self.mtime, self.ctime] {
            record.extend(number.to_le_bytes());
        }
        let offset = u32::try_from(before.len()).unwrap();
        for number in [self.links, offset, self.mode, self.user, self.group, 0] {
            record.extend(number.to_le_bytes());
        }
        Directory {
            leaves: [before, line.as_bytes()].concat(),
            identities: record,
            inode: self.folder,
            device: self.directory_device.unwrap_or(self.device),
            file_system: self.file_system,
            ..Directory::default()
        }
    }
}

/// The known digest of a file: none, a valid one, or one that depends on the time of birth.
#[derive(Debug, Clone, Copy, PartialEq)]
enum KnownDigest {
    Unknown,
    Known(Digest),
    IfBorn(i64, Digest),
}
use KnownDigest::{IfBorn, Known, Unknown};

struct TableFolder(Folder);

impl TableFolder {
    fn new() -> Self {
        Self(Folder::new())
    }

    fn table(&self) -> PathBuf {
        Path::new(OsStr::from_bytes(self.0.path())).join("digests")
    }

    fn open(&self) -> Digests {
        Digests::open(self.0.path(), &[]).unwrap()
    }

    /// Look up files, and store nothing.
    fn ask(&self, files: &[ScannedFile]) -> Vec<KnownDigest> {
        self.ask_and(files, None)
    }

    /// Look up files, and store all with a digest, as a whole commit does.
    fn keep(&self, files: &[ScannedFile], digest: Digest) -> Vec<KnownDigest> {
        self.ask_and(files, Some(digest))
    }

    /// Look up files, and settle the uncertain ones with `digest`; with one, end the commit.
    fn ask_and(&self, files: &[ScannedFile], digest: Option<Digest>) -> Vec<KnownDigest> {
        let mut digests = self.open();
        let directories: Vec<_> = files.iter().map(ScannedFile::directory).collect();
        let doubts = digests
            .look_up(&directories.iter().collect::<Vec<_>>())
            .unwrap();
        let results = vec![digest.map(|digest| (Some(BIRTH), digest)); doubts.len()];
        let columns = digests.settle(&results).unwrap();
        if digest.is_some() {
            digests.finish().unwrap();
        }
        let answer = |(number, column): (usize, Vec<u8>)| {
            let doubt = doubts.iter().find(|doubt| doubt.place.0 == number);
            match doubt.map(|doubt| doubt.if_born) {
                Some(Some((birth, digest))) => IfBorn(birth, digest),
                Some(None) => Unknown,
                None => Known(column.try_into().unwrap()),
            }
        };
        columns.into_iter().enumerate().map(answer).collect()
    }
}

/// Hash files, and store the results without finishing.
fn read(digests: &mut Digests, files: &[ScannedFile], digest: Digest) {
    let directories: Vec<_> = files.iter().map(ScannedFile::directory).collect();
    let doubts = digests
        .look_up(&directories.iter().collect::<Vec<_>>())
        .unwrap();
    let results = vec![Some((Some(BIRTH), digest)); doubts.len()];
    digests.settle(&results).unwrap();
}

/// Make more files than two blocks hold.
fn many() -> Vec<ScannedFile> {
    let file = |number| ScannedFile {
        inode: u64::from(number),
        name: number,
        ..ONE
    };
    (1..=10_000).map(file).collect()
}

#[test]
fn what_was_kept_is_known() {
    let folder = TableFolder::new();
    assert_eq!(folder.ask(&[ONE]), [Unknown]);
    assert!(!folder.table().exists());
    assert_eq!(folder.keep(&[ONE], DIGEST), [Unknown]);
    assert_eq!(folder.ask(&[ONE]), [Known(DIGEST)]);
    let mode = folder.table().metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "only the owner reads them");
}

#[test]
fn an_attribute_that_changed_explains_a_new_ctime_and_nothing_else() {
    let variants = [
        ScannedFile { links: 99, ..ONE },
        ScannedFile { mode: 99, ..ONE },
        ScannedFile { user: 99, ..ONE },
        ScannedFile { group: 99, ..ONE },
        ScannedFile { folder: 99, ..ONE },
        ScannedFile { name: 99, ..ONE },
    ];
    for other in variants {
        let folder = TableFolder::new();
        folder.keep(&[ONE], DIGEST);
        let changed = ScannedFile { ctime: 6, ..other };
        assert_eq!(folder.ask(&[changed]), [IfBorn(BIRTH, DIGEST)]);
        assert_eq!(
            folder.ask(&[other]),
            [Known(DIGEST)],
            "another name of the file"
        );
        for file in [other, changed] {
            assert_eq!(folder.ask(&[ScannedFile { size: 6, ..file }]), [Unknown]);
            assert_eq!(folder.ask(&[ScannedFile { mtime: 6, ..file }]), [Unknown]);
            assert_eq!(folder.ask(&[ScannedFile { inode: 6, ..file }]), [Unknown]);
            assert_eq!(folder.ask(&[ScannedFile { device: 6, ..file }]), [Unknown]);
        }
    }
}

#[test]
fn any_other_identity_is_another_file() {
    let folder = TableFolder::new();
    folder.keep(&[ONE], DIGEST);
    let variants = [
        ScannedFile { device: 99, ..ONE },
        ScannedFile { inode: 99, ..ONE },
        ScannedFile { size: 99, ..ONE },
        ScannedFile { mtime: 99, ..ONE },
        ScannedFile { ctime: 99, ..ONE },
    ];
    for other in variants {
        assert_eq!(folder.ask(&[other]), [Unknown]);
    }
}

#[test]
fn a_file_system_that_is_mounted_again_is_the_same() {
    let folder = TableFolder::new();
    folder.keep(&[MOUNTED], DIGEST);
    let before = folder.table().metadata().unwrap();
    let again = ScannedFile {
        device: 6,
        ..MOUNTED
    };
    assert_eq!(folder.keep(&[again], OTHER), [Known(DIGEST)]);
    let after = folder.table().metadata().unwrap();
    let same = (before.ino(), before.mtime_nsec()) == (after.ino(), after.mtime_nsec());
    assert!(same, "the table is as it would be written");
    let chmod = ScannedFile {
        mode: 0o600,
        ctime: 6,
        ..again
    };
    assert_eq!(folder.ask(&[chmod]), [IfBorn(BIRTH, DIGEST)]);
    for file_system in [MOUNTED.file_system + 1, 0] {
        assert_eq!(
            folder.ask(&[ScannedFile {
                file_system,
                ..MOUNTED
            }]),
            [Unknown]
        );
    }
}

#[test]
fn a_file_on_another_device_than_its_directory_keeps_its_device_number() {
    // As in an overlay of several file systems.
    let folder = TableFolder::new();
    let lower = ScannedFile {
        directory_device: Some(9),
        ..MOUNTED
    };
    folder.keep(&[lower], DIGEST);
    assert_eq!(
        folder.ask(&[ScannedFile {
            file_system: 0,
            ..lower
        }]),
        [Known(DIGEST)]
    );
    assert_eq!(folder.ask(&[ScannedFile { device: 6, ..lower }]), [Unknown]);
}

/// A table of a version that stored device numbers: of device 40, inodes 2 and 3 (with two names).
const EARLIER: &str = "68756169206469676573747320310a0002000000ca1e6e0c280000000000000002000000\
    0000000003000000000000000400000000000000050000000000000001000000a4010000000000000000000007000000\
    00000000067e235e000000000b000000000000000101010101010101010101010101010101010101010101010101010101\
    0101012800000000000000030000000000000003000000000000000400000000000000050000000000000002000000a4\
    01000000000000000000000700000000000000067e235e000000000b0000000000000001010101010101010101010101\
    01010101010101010101010101010101010101";

/// Return the bytes of that table.
fn earlier() -> Vec<u8> {
    let digits: Vec<_> = EARLIER.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks_exact(2).map(byte).collect()
}

/// Return the files of that table.
fn earlier_files() -> [ScannedFile; 2] {
    let file = ScannedFile {
        device: 40,
        ..MOUNTED
    };
    let links = 2;
    [
        file,
        ScannedFile {
            inode: 3,
            links,
            ..file
        },
    ]
}

#[test]
fn a_table_of_an_earlier_version_is_used() {
    for name in ["digests", "digests.left", "digests.new"] {
        let folder = TableFolder::new();
        folder.0.write(name, &earlier());
        let files = earlier_files();
        let chmod = files.map(|file| ScannedFile {
            mode: 0o600,
            ctime: 6,
            ..file
        });
        assert_eq!(folder.ask(&chmod), [IfBorn(BIRTH, DIGEST); 2]);
        assert_eq!(folder.keep(&files, OTHER), [Known(DIGEST); 2]);
        let again = files.map(|file| ScannedFile { device: 6, ..file });
        assert_eq!(
            folder.ask(&again),
            [Known(DIGEST); 2],
            "with the number that stays"
        );
    }
    let folder = TableFolder::new();
    folder.0.write("digests", &earlier());
    let elsewhere = earlier_files().map(|file| ScannedFile { device: 41, ..file });
    assert_eq!(folder.ask(&elsewhere), [Unknown; 2]);
}

#[test]
fn a_killed_commit_after_an_update_loses_nothing() {
    let folder = TableFolder::new();
    folder.0.write("digests.left", &earlier());
    let new = ScannedFile {
        inode: 99,
        ..MOUNTED
    };
    let mut digests = folder.open();
    read(&mut digests, &[new], OTHER);
    digests.flush().unwrap();
    let [first, second] = earlier_files();
    let expected = [Known(DIGEST), Known(DIGEST), Known(OTHER)];
    assert_eq!(folder.ask(&[first, second, new]), expected);
}

#[test]
fn a_file_without_a_time_of_birth_is_read_again_when_its_ctime_changed() {
    let folder = TableFolder::new();
    let mut digests = folder.open();
    digests.look_up(&[&ONE.directory()]).unwrap();
    digests.settle(&[Some((None, DIGEST))]).unwrap();
    digests.finish().unwrap();
    assert_eq!(folder.ask(&[ONE]), [Known(DIGEST)]);
    assert_eq!(
        folder.ask(&[ScannedFile {
            mode: 0o600,
            ctime: 6,
            ..ONE
        }]),
        [Unknown]
    );
}

/// Make two names of one file.
fn names() -> [ScannedFile; 2] {
    [0, 1].map(|name| ScannedFile {
        links: 2,
        name,
        ..ONE
    })
}

#[test]
fn of_several_names_the_first_that_is_met_explains_a_new_ctime() {
    // The others may have been swapped like snapshots.
    let folder = TableFolder::new();
    folder.keep(&names(), DIGEST);
    let mut now = names().map(|file| ScannedFile { ctime: 6, ..file });
    assert_eq!(folder.ask(&now), [Unknown, Unknown], "edited in place");
    now.reverse();
    assert_eq!(folder.ask(&now), [IfBorn(BIRTH, DIGEST), Unknown]);
}

#[test]
fn a_later_name_is_never_explained_by_itself() {
    // The first could not be hashed, because the file changed meanwhile.
    let folder = TableFolder::new();
    folder.keep(&names(), DIGEST);
    let [first, second] = names().map(|file| ScannedFile { ctime: 6, ..file }.directory());
    let mut digests = folder.open();
    assert_eq!(digests.look_up(&[&first]).unwrap().len(), 1);
    digests.settle(&[None]).unwrap();
    let doubts = digests.look_up(&[&second]).unwrap();
    assert_eq!(
        doubts.iter().map(|doubt| doubt.if_born).collect::<Vec<_>>(),
        [None]
    );
}

#[test]
fn a_second_name_has_the_digest_that_was_read_for_the_first() {
    let folder = TableFolder::new();
    let [first, second] = names().map(|file| file.directory());
    let mut digests = folder.open();
    assert_eq!(digests.look_up(&[&first]).unwrap().len(), 1);
    let column = digests.settle(&[Some((Some(BIRTH), DIGEST))]).unwrap();
    assert_eq!(column, [DIGEST]);
    assert!(digests.look_up(&[&second]).unwrap().is_empty());
    assert_eq!(digests.settle(&[]).unwrap(), [DIGEST]);
}

#[test]
fn extreme_numbers() {
    let (top, bottom) = (i64::MAX, i64::MIN);
    let all = ScannedFile {
        device: u64::MAX,
        inode: u64::MAX,
        size: top,
        mtime: bottom,
        ctime: bottom,
        folder: u64::MAX,
        ..ONE
    };
    let files = [
        all,
        ScannedFile {
            inode: 1 << 63,
            size: 0,
            mtime: top,
            ctime: top,
            ..all
        },
        ScannedFile {
            device: 1 << 63,
            size: 1,
            mtime: 0,
            ctime: 0,
            ..all
        },
    ];
    let folder = TableFolder::new();
    folder.keep(&files, DIGEST);
    assert_eq!(folder.ask(&files), [Known(DIGEST); 3]);
}

#[test]
fn files_that_came_went_or_moved_are_found() {
    let (folder, files) = (TableFolder::new(), many());
    folder.keep(&files, DIGEST);
    let new = ScannedFile {
        inode: 99_999,
        ..ONE
    };
    let moved = ScannedFile {
        folder: 8,
        ..files[5000]
    };
    let parts = [
        &files[..10],
        &[new],
        &files[20..5000],
        &files[5001..9000],
        &[moved],
    ];
    let now = [&parts.concat()[..], &files[9500..]].concat();
    let mut expected = vec![Known(DIGEST); now.len()];
    expected[10] = Unknown;
    assert_eq!(folder.keep(&now, OTHER), expected);
    expected[10] = Known(OTHER);
    assert_eq!(folder.ask(&now), expected);
    assert_eq!(
        folder.ask(&files[10..20]),
        [Unknown; 10],
        "what is gone is forgotten"
    );
}

#[test]
fn the_same_files_are_not_written_again() {
    let (folder, files) = (TableFolder::new(), many());
    folder.keep(&files, DIGEST);
    let inode = || folder.table().metadata().unwrap().ino();
    let before = inode();
    folder.keep(&files, OTHER);
    assert_eq!(inode(), before);
    folder.keep(&files[1..], OTHER);
    assert_ne!(inode(), before);
}

#[test]
fn what_a_killed_commit_found_out_is_not_lost() {
    // Hashing all content may take days, and be interrupted more than once.
    let (folder, files) = (TableFolder::new(), many());
    for files in files.chunks(5000) {
        read(&mut folder.open(), files, DIGEST); // only whole blocks are written
    }
    let half = [vec![Known(DIGEST); BLOCK], vec![Unknown; 5000 - BLOCK]].concat();
    assert_eq!(folder.ask(&files), [half.clone(), half].concat());
    let mut digests = folder.open();
    read(&mut digests, &files[BLOCK..5000], DIGEST);
    digests.flush().unwrap();
    let count = 5000 + BLOCK;
    let mut expected = vec![Known(DIGEST); files.len()];
    expected[count..].fill(Unknown);
    assert_eq!(folder.keep(&files, OTHER), expected);
    assert_eq!(
        std::fs::read_dir(folder.table().parent().unwrap())
            .unwrap()
            .count(),
        1
    );
    expected[count..].fill(Known(OTHER));
    assert_eq!(folder.ask(&files), expected);
}

#[test]
fn damaged_ones_are_made_again() {
    let files = many();
    let damages: [fn(&mut Vec<u8>); 5] = [
        |table| table.iter_mut().for_each(|byte| *byte ^= 0x5a),
        Vec::clear,
        |table| table.truncate(16),
        |table| table[13] = b'2', // another version
        |table| table[16..].fill(0),
    ];
    for damage in damages {
        let folder = TableFolder::new();
        folder.keep(&files, DIGEST);
        let mut table = folder.0.read("digests");
        damage(&mut table);
        folder.0.write("digests", &table);
        assert_eq!(folder.keep(&files, OTHER), vec![Unknown; files.len()]);
        assert_eq!(folder.ask(&files), vec![Known(OTHER); files.len()]);
    }
}

#[test]
fn a_damaged_block_costs_its_files_and_a_cut_the_rest() {
    let (folder, files) = (TableFolder::new(), many());
    folder.keep(&files, DIGEST);
    let table = folder.0.read("digests");
    let mut damaged = table.clone();
    damaged[BLOCK_BYTES * 3 / 2] ^= 1;
    folder.0.write("digests", &damaged);
    let mut expected = vec![Known(DIGEST); files.len()];
    expected[BLOCK..2 * BLOCK].fill(Unknown);
    assert_eq!(folder.ask(&files), expected);
    folder.0.write("digests", &table[..table.len() / 2]);
    expected[BLOCK..].fill(Unknown);
    assert_eq!(folder.keep(&files, OTHER), expected);
    expected[BLOCK..].fill(Known(OTHER));
    assert_eq!(folder.ask(&files), expected);
}

#[test]
fn a_place_that_cannot_be_used() {
    let folder = TableFolder::new();
    let absent = [folder.0.path(), b"/absent"].concat();
    assert_eq!(Digests::open(&absent, &[]).unwrap_err().errno, Errno::NOENT);
    folder.0.make_directory("digests");
    let opened = Digests::open(folder.0.path(), &[]);
    let failed = opened.and_then(|mut digests| digests.look_up(&[&ONE.directory()]));
    assert_eq!(failed.unwrap_err().errno, Errno::ISDIR);
}
