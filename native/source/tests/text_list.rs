//! Reads lists that programs print.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../format/tests/model/mod.rs"]
mod model;

use std::io::Cursor;

use huai_format::snapshots::{EntryLimit, Snapshot, Walk};
use huai_source::entry_list::EntryList;
use huai_source::text_list::TextList;

use model::Objects;

const LIMIT: u64 = 1000;
const DIGEST: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// Read a list in parts; return its directories, or the error.
fn read(text: &[u8], part: usize) -> Result<(Vec<String>, u64, bool), String> {
    let mut entries = EntryList::new(Cursor::new(Vec::new()), LIMIT);
    let mut list = TextList::default();
    for part in text.chunks(part) {
        list.feed(part, &mut entries).map_err(|it| it.to_string())?;
    }
    list.finish(&mut entries).map_err(|it| it.to_string())?;
    let (skipped, other_digests) = (entries.skipped(), list.has_other_digests());
    let objects = Objects::default();
    let tree = entries.write_tree(&mut &objects);
    let tree = tree.map_err(|it| it.to_string())?.tree;
    let snapshot = Snapshot {
        reader: &objects,
        tree,
    };
    let mut walk = Walk::new(&snapshot, EntryLimit::new(LIMIT));
    let mut all = Vec::new();
    while let Some(listing) = walk.next(&snapshot).unwrap() {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let digests = listing.digests.iter().filter(|&&byte| byte != 0).count();
        let digests = if digests > 0 { " with digests" } else { "" };
        let path = text(listing.path.as_bytes());
        let attributes = text(&listing.attributes);
        let leaves = text(&listing.leaves);
        all.push(format!("/{path} {attributes}: {leaves}{digests}"));
    }
    Ok((all, skipped, other_digests))
}

/// Return the directories of a list, which are the same if it is read byte by byte.
fn listed(text: &str) -> Vec<String> {
    let at_once = read(text.as_bytes(), text.len()).unwrap();
    assert_eq!(read(text.as_bytes(), 1).unwrap(), at_once);
    at_once.0
}

fn refusal(text: &str) -> String {
    read(text.as_bytes(), 7).unwrap_err()
}

#[test]
fn lines() {
    let text = format!(
        concat!(
            r#"{{"path": "d/one", "type": "file", "size": 3, "mtime": 5.25, "mode": "0600"}}"#,
            "\n\n",
            r#"{{"mtime": "1970-01-01T01:00:07+01:00", "size": 4, "path": "d/two", "digest": "{}"}}"#,
            "\n",
            r#"{{"path": "d", "type": "directory", "mtime": 9, "mode": "700", "more": [1, {{"x": null}}]}}"#,
            "\n",
            r#"{{"path": "l\u00fc\ud83d\ude00\udcff", "type": "symlink", "target": "d\\n", "mtime": -1}}"#,
        ),
        DIGEST
    );
    assert_eq!(
        listed(&text),
        [
            "/ 7: lü😀\u{fffd}\t>d\\x5cn\t-1\n",
            "/d 9\tm700: one\t3\t5.25\tm600\ntwo\t4\t7\n with digests",
        ]
    );
}

#[test]
fn bytes_that_are_not_utf8() {
    for byte in 0x80..=0xff {
        let raw = [b"{\"\xff\": \"\xff\", \"path\": \"a", &[byte][..], b"\", "].concat();
        let escaped = format!(r#""size": 1, "mtime": 1}}{{"path": "a\udc{byte:x}", "#);
        let end = br#""size": 1, "mtime": 1}"#;
        let once = [&raw[..], end].concat();
        assert_eq!(read(&once, 99).unwrap().0, ["/ 1: a\u{fffd}\t1\t1\n"]);
        let twice = [&raw[..], escaped.as_bytes(), end].concat();
        assert!(read(&twice, 99).unwrap_err().contains("listed twice"));
    }
    for escape in [
        r"\udc7f",
        r"\udd00",
        r"\ud800\ud800",
        r"\ud800x",
        r"\udbff\n",
    ] {
        let reason = refusal(&format!(r#"{{"path": "{escape}", "size": 1, "mtime": 1}}"#));
        assert!(
            reason.contains("not an object of JSON"),
            "{escape}: {reason}"
        );
    }
}

#[test]
fn other_values_may_be_nested_however_deeply() {
    let (begin, end) = (r#"[{"x":"#.repeat(8000), "}]".repeat(8000));
    let text = format!(r#"{{"path": "a", "size": 1, "x": {begin}1{end}, "mtime": 1}}"#);
    assert_eq!(listed(&text), ["/ 1: a\t1\t1\n"]);
    for member in ["path", "IsDir", "size", "mtime", "Hashes"] {
        refusal(&format!(r#"{{"{member}": {begin}1{end}}}"#));
    }
}

#[test]
fn an_array_of_rclone() {
    let text = concat!(
        "[\n",
        r#"{"Path":"a b","Name":"a b","Size":3,"MimeType":"x","ModTime":"2001-09-09T01:46:40.000000001Z","IsDir":false,"Hashes":{"md5":"00","blake3":""}},"#,
        "\n",
        r#"{"Path":"empty","Name":"empty","Size":-1,"MimeType":"inode/directory","ModTime":"2026-11-26T17:00:00Z","IsDir":true},"#,
        "\n",
        r#"{"Path":"unknown","Name":"unknown","Size":-1,"ModTime":"2026-11-26T17:00:00Z","IsDir":false}"#,
        "\n]\n"
    );
    let (listings, skipped, has_other_digests) = read(text.as_bytes(), 9).unwrap();
    let root = "/ 1000000000.000000001: a b\t3\t1000000000.000000001\n";
    assert_eq!(listings, [root, "/empty 0: "]);
    assert_eq!((skipped, has_other_digests), (1, true));
    assert_eq!(read(b"[\n]\n", 1).unwrap().0, ["/ 0: "]);
    for end in 2..text.len() - 2 {
        assert!(read(&text.as_bytes()[..end], 100).is_err(), "{end}");
    }
}

#[test]
fn mtree_by_directories() {
    // As mtree -c of NetBSD prints it.
    let text = concat!(
        "#\t   user: (null)\n#\tmachine: vm\n\n# .\n",
        "/set type=file mode=0644 uid=0\n",
        ".               type=dir mode=0755 time=7.5\n",
        "    ln          type=link mode=0777 time=5.000000000 link=one\\sx\n",
        "    new\\nline\\\\b \\\n",
        "                size=1 time=5.000000001 \\\n",
        "                sha256=6b86b273ff34fce19d6b804eff5a3f57\n\n",
        "# ./d\nd               type=dir mode=0700 time=6.0\n",
        "    \\M-C\\M-<\\#    size=2 time=-4.20000000 mode=0600 flags=none\n",
        "    pipe        type=fifo time=4.0\n",
        "/set time=3.0 size=1\n    end\\\\\n",
        "# ./d\n..\n\n..\n\n",
    );
    let (listings, skipped, has_other_digests) = read(text.as_bytes(), 5).unwrap();
    let root = "/ 7.000000005: ln\t>one x\t5\nnew\\x0aline\\x5cb\t1\t5.000000001\n";
    assert_eq!(
        listings,
        [root, "/d 6\tm700: end\\x5c\t1\t3\nü#\t2\t-4.02\tm600\n"]
    );
    assert_eq!((skipped, has_other_digests), (1, true));
    let directory = text.find("d   ").unwrap();
    for end in directory + 1..text.find("..\n").unwrap() {
        assert!(read(&text.as_bytes()[..end], 100).is_err(), "{end}");
    }
    assert!(refusal("# .\n/set type=file\n").contains("not complete"));
    assert!(refusal(&format!("{text}. type=dir\n..\n")).contains("outside of all directories"));
}

#[test]
fn mtree_by_paths() {
    let text = concat!(
        "#mtree\n",
        ". time=9.0 mode=755 type=dir\n",
        "./d time=8.0 mode=755 type=dir\n",
        "./d/tw\\040o\\043 gname=root uname=root time=7.0 mode=644 size=3 type=file\n",
        "./l time=6.0 mode=777 type=link link=\\303\\274\n",
    );
    assert_eq!(listed(text), ["/ 9: l\t>ü\t6\n", "/d 8: tw o#\t3\t7\n"]);
    for (line, rule) in [
        ("..\n..\n", "leads out of the tree"),
        ("d/../../up size=1 type=file time=1.0", "unsafe path"),
        ("d/\\x41 size=1 type=file time=1.0", "unknown escape"),
        ("d/f type=file time=1.0", "has no size"),
        ("d/f type=file size=1", "has no mtime"),
        ("d/f type=file size=1 time=now", "not a number of seconds"),
        (
            "d/f type=file size=1 time=1.1000000000",
            "not a number of seconds",
        ),
        ("d/f type=file size=1 time=1.0 \\\n", "is not complete"),
        ("d/f type=file size=1 time=1.0", "is not complete"),
        ("d/f type=file size=1 time=1.0 mode=u+x", "octal"),
    ] {
        let end = if rule.ends_with("complete") { "" } else { "\n" };
        let reason = refusal(&format!("{text}{line}{end}"));
        assert!(reason.contains(rule), "{line}: {reason}");
    }
}

#[test]
fn directories_that_are_not_listed_get_the_newest_time_below() {
    let text = concat!(
        r#"{"path": "a/b/c/f", "size": 1, "mtime": 3}"#,
        "\n",
        r#"{"path": "a/g", "size": 1, "mtime": 2}"#,
        "\n",
        r#"{"path": "a/b", "type": "directory", "mtime": null, "mode": "711"}"#,
        "\n",
        r#"{"path": "a/x", "type": "directory"}"#,
        "\n",
        r#"{"path": ".", "type": "directory", "mtime": 8}"#,
    );
    assert_eq!(
        listed(text),
        [
            "/ 8: ",
            "/a 3: g\t1\t2\n",
            "/a/b 3\tm711: ",
            "/a/b/c 3: f\t1\t3\n",
            "/a/x 0: ",
        ]
    );
}

#[test]
fn other_lists_are_refused() {
    let line = r#"{"path": "a", "size": 1, "mtime": 1}"#;
    for (text, rule) in [
        ("", "empty"),
        ("\n\n", "empty"),
        ("<html>", "line 1: this is not an object of JSON"),
        (&format!("{line}\n{line}"), "listed twice"),
        (
            &format!("{line}\n{{\"path\": \"a/b\", \"size\": 1, \"mtime\": 1}}"),
            "listed twice",
        ),
        (&format!("{line}\n{{"), "line 2"),
        (&format!("[{line}"), "its array has no end"),
        (&format!("[{line}]{line}"), "continues after its end"),
        (r#"{"size": 1, "mtime": 1}"#, "without a path"),
        (r#"{"path": "a", "mtime": 1}"#, "a: has no size"),
        (r#"{"path": "a", "size": 1}"#, "a: has no mtime"),
        (
            r#"{"path": "a", "type": "symlink", "mtime": 1}"#,
            "has no target",
        ),
        (r#"{"path": "../a", "size": 1, "mtime": 1}"#, "unsafe path"),
        (r#"{"path": "/a", "size": 1, "mtime": 1}"#, "unsafe path"),
        (r#"{"path": "a", "size": 1.5, "mtime": 1}"#, "whole number"),
        (
            r#"{"path": "a", "size": 1, "mtime": "yesterday"}"#,
            "RFC 3339",
        ),
        (
            r#"{"path": "a", "size": 1, "mtime": 1, "mode": "0888"}"#,
            "octal",
        ),
        (
            r#"{"path": "a", "size": 1, "mtime": 1, "digest": "00"}"#,
            "BLAKE3",
        ),
        (r#"{"path": "a", "size": 1, "mtime": 1} {"#, "JSON"),
        (r#"{"path": "\ud800", "size": 1, "mtime": 1}"#, "JSON"),
        (
            &format!(r#"{{"path": "{}"}}"#, "a".repeat(99_999)),
            "too long",
        ),
    ] {
        let reason = refusal(text);
        assert!(reason.contains(rule), "{text:.100}: {reason}");
    }
    let deep: String = (0..2000).map(|_| "d/").collect();
    let deep = format!(r#"{{"path": "{deep}f", "size": 1, "mtime": 1}}"#);
    assert!(refusal(&deep).contains("leaves out too many directories"));
}
