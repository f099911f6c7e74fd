//! Checks the canonical form of lines of leaves and directories, and the messages of refusals.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use huai_format::entries::{Body, Entry, Leaves, decode_directory, has_leaf};
use huai_format::path::RelPath;
use huai_git::error::Error;

fn directory() -> RelPath {
    RelPath::parse(b"pool/main").unwrap()
}

/// Decode the leaves `text` of `directory()`; returns the first error.
fn decode(text: &[u8], digests: &[u8]) -> Result<Vec<Entry<'static>>, Error> {
    let directory = directory();
    Leaves::new(&directory, text, digests)
        .map(|entry| entry.map(Entry::into_owned))
        .collect()
}

/// Return the message with which `text` is refused.
fn refusal(text: &[u8]) -> String {
    decode(text, b"").unwrap_err().to_string()
}

#[test]
fn defaults_are_filled_in() {
    let entries = decode(b"a\t5\t1\nl\t>t\t-2.5\tm0\tu#1\tgstaff\tzx\n", b"").unwrap();
    let [file, link] = &entries[..] else {
        panic!("{entries:?}")
    };
    assert_eq!(
        (&*file.name, file.mtime, file.mode),
        (&b"a"[..], 1_000_000_000, 0o644)
    );
    assert_eq!((&*file.owner, &*file.group), (&b"root"[..], &b"root"[..]));
    assert_eq!(
        file.body,
        Body::File {
            size: 5,
            link: None,
            digest: None
        }
    );
    assert_eq!((link.mtime, link.mode), (-1_500_000_000, 0));
    assert_eq!((&*link.owner, &*link.group), (&b"#1"[..], &b"staff"[..]));
}

#[test]
fn a_digest_belongs_to_a_file() {
    let column = [[1; 32], [0; 32]].concat();
    let entries = decode(b"a\t0\t0\nb\t>t\t0\nc\t0\t0\n", &column).unwrap();
    let digests = entries.iter().map(|entry| match entry.body {
        Body::File { digest, .. } => digest,
        _ => None,
    });
    assert_eq!(digests.collect::<Vec<_>>(), [Some([1; 32]), None, None]);
    for column in [
        &column[..32],
        &column[..63],
        &[&column[..], &[1; 32]].concat(),
    ] {
        let error = decode(b"a\t0\t0\nb\t>t\t0\nc\t0\t0\n", column).unwrap_err();
        let rule = "pool/main: the digest column does not have one digest for each file";
        assert_eq!(error.to_string(), rule);
    }
}

#[test]
fn each_entry_has_one_spelling() {
    let refused: &[(&[u8], &str)] = &[
        (b"a\t0\t0", "pool/main/a\\t0\\t0: not a canonical line"),
        (b"a\t00\t0\n", "not a canonical line"),
        (b"a\t0\t01\n", "not a canonical line"),
        (b"a\t0\t-0\n", "not a canonical line"),
        (b"a\t0\t-0.5\n", "not a canonical line"),
        (b"a\t0\t1.\n", "not a canonical line"),
        (b"a\t0\t1.50\n", "not a canonical line"),
        (b"a\t0\t1.0000000001\n", "not a canonical line"),
        (b"a\t0\t0\t\n", "not a canonical line"),
        (b"a\t0\t0\t\tzx\n", "not a canonical line"),
        (b"a\t>\t0\n", "not a canonical line"),
        (b"\t0\t0\n", "not a canonical line"),
        (b"a/b\t0\t0\n", "not a canonical line"),
        (b"a\r\t0\t0\n", "not a canonical line"),
        (b"a\t10000000000000000000\t0\n", "not a canonical line"),
        (
            b"a\t9999999999999999999\t0\n",
            "pool/main/a: a size of 9999999999999999999 bytes",
        ),
        (
            b"a\t0\t9223372037\n",
            "pool/main/a: a time out of range: 9223372037 s",
        ),
        (
            b"b\t0\t0\na\t0\t0\n",
            "pool/main/a: names are not sorted or not unique",
        ),
        (b"a\t0\t0\na\t0\t0\n", "names are not sorted or not unique"),
        (b"..\t0\t0\n", "pool/main/..: '..' cannot name an entry"),
        (
            b".~TMP~\t0\t0\n",
            "the name '.~TMP~' is reserved, in every directory",
        ),
        (b"a\\x2f\t0\t0\n", "a stray backslash: b'a\\\\x2f'"),
        (b"a\\x00\t0\t0\n", "a name holds NUL or '/'"),
        (b"a\t0\t0\tm644\n", "not a canonical mode: b'644'"),
        (b"a\t0\t0\tm0644\n", "not a canonical mode: b'0644'"),
        (b"a\t0\t0\tm77777\n", "not a canonical mode: b'77777'"),
        (b"a\t0\t0\turoot\n", "not a canonical owner: b'root'"),
        (b"a\t0\t0\tu\n", "not a canonical owner: b''"),
        (
            b"a\t0\t0\tgx\tux\n",
            "fields are out of order or repeated: b'\\tgx\\tux'",
        ),
        (b"a\t0\t0\tzx\tm0\n", "fields are out of order or repeated"),
        (b"a\t0\t0\tm0\tm1\n", "fields are out of order or repeated"),
        (
            b"a\t0\t0\tZ\n",
            "a field this version must understand, and does not: b'Z'",
        ),
        (b"a\t>t\t0\thb\n", "a symlink cannot be a hardlink"),
    ];
    for (text, rule) in refused {
        let error = refusal(text);
        assert!(error.contains(rule), "{error} for {}", text.escape_ascii());
    }
}

#[test]
fn a_time_is_used_up_to_its_bounds() {
    let time = |text: &str| decode(format!("a\t0\t{text}\n").as_bytes(), b"").unwrap()[0].mtime;
    assert_eq!(time("9223372036.854775807"), i64::MAX);
    assert_eq!(time("-9223372037.145224193"), -i64::MAX);
    assert!(refusal(b"a\t0\t-9223372037.145224192\n").contains("out of range"));
}

#[test]
fn a_leader_is_named_in_one_way() {
    let link = |relative: &[u8]| -> Result<Vec<u8>, String> {
        let line = [b"m\t0\t0\th", relative, b"\n"].concat();
        match &decode(&line, b"").map_err(|error| error.to_string())?[0].body {
            Body::File { link, .. } => Ok(link.clone().unwrap().as_bytes().to_vec()),
            other => panic!("{other:?}"),
        }
    };
    let leaders: &[(&[u8], &[u8])] = &[
        (b"a", b"pool/main/a"),
        (b"../a", b"pool/a"),
        (b"../../a", b"a"),
        (b"../../a/z", b"a/z"),
        (b"../lib/z", b"pool/lib/z"),
    ];
    for (relative, leader) in leaders {
        assert_eq!(link(relative), Ok(leader.to_vec()));
    }
    for relative in [
        &b"z"[..],
        b"m",
        b"sub/a",
        b"../main/a",
        b"../../pool/a",
        b"../z/a",
    ] {
        let rule = "not a canonical hardlink";
        assert!(
            link(relative).unwrap_err().contains(rule),
            "{}",
            relative.escape_ascii()
        );
    }
    assert!(
        link(b"../../../a")
            .unwrap_err()
            .contains("leads out of the module")
    );
    assert!(link(b"./a").unwrap_err().contains("cannot name an entry"));
    assert!(link(b"../../.~tmp~/a").unwrap_err().contains("reserved"));
}

#[test]
fn lengths_are_bounded() {
    let long = [b"a\t0\t0\tz", &vec![b'x'; 65_536][..], b"\n"].concat();
    assert_eq!(refusal(&long), "pool/main: a line of more than 65536 bytes");
    let name = [b'n'; 256];
    assert!(
        refusal(&[&name[..], b"\t0\t0\n"].concat()).contains("a name of 256 bytes exceeds 255")
    );
    let deep = RelPath::parse(&[[b'd'; 255]; 15].join(&b'/')).unwrap();
    let line = [&[b'n'; 255][..], b"\t0\t0\n"].concat();
    let at_limit = Leaves::new(&deep, &line, b"").next().unwrap();
    assert!(at_limit.is_ok());
    let deeper = deep.join(b"d");
    let at_limit = Leaves::new(&deeper, &line, b"").next().unwrap();
    assert!(
        at_limit
            .unwrap_err()
            .to_string()
            .contains("a path of more than 4095 bytes")
    );
}

#[test]
fn attributes_of_a_directory_are_canonical_too() {
    assert_eq!(
        decode_directory(&directory(), b"1\tm0\tzx").unwrap().mode,
        0
    );
    let refused: [&[u8]; 8] = [
        b"", b"1\n", b"1\tm755", b"1\tha", b"x", b"1\t", b"1.50", b"1\tZ",
    ];
    for attributes in refused {
        let message = decode_directory(&directory(), attributes)
            .unwrap_err()
            .to_string();
        assert!(message.starts_with("pool/main: "), "{message}");
    }
}

#[test]
fn a_leaf_is_found_among_many() {
    let mut text = Vec::new();
    for number in (0..2000).step_by(2) {
        text.extend_from_slice(format!("{number:04}\t5\t1\n").as_bytes());
    }
    text.extend_from_slice(b"\\x5c\t5\t1\na\t5\t1\n");
    for number in 0..2000 {
        let name = format!("{number:04}");
        assert_eq!(has_leaf(&text, name.as_bytes()).unwrap(), number % 2 == 0);
    }
    assert!(has_leaf(&text, b"\\").unwrap());
    assert!(has_leaf(&text, b"a").unwrap());
    assert!(!has_leaf(&text, b"").unwrap());
    assert!(!has_leaf(b"", b"a").unwrap());
}
