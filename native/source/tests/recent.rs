//! Reads files of events, those of the real tool among them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use huai_source::recent::{Epoch, RecentFile, read_recent};

const META: &str = r#"{"meta":{"minmax":{"min":2},"merged":{"epoch":1.5}},"recent":["#;
const NEW: &str = r#"{"epoch":"3.25","path":"d/a","type":"new"}"#;
const DELETE: &str = r#"{"type":"delete","path":"b","epoch":2.0}"#;

/// Read a file of events after epoch 1.
fn read(text: impl AsRef<[u8]>) -> Result<RecentFile, String> {
    let since = Epoch::parse("1").unwrap();
    read_recent(text.as_ref(), Some(since)).map_err(|error| error.to_string())
}

#[test]
fn the_events_that_the_tool_wrote_have_odd_names() {
    let json = include_bytes!("recent/odd.json");
    let from_json = read(json).unwrap().events;
    assert_eq!(from_json.len(), 35);
    for name in [
        &b"\xff\xfe"[..],
        "ü".as_bytes(),
        b"x\ny",
        b"q\"uo'te",
        b"\x01x",
        b" ",
        b"1.5",
    ] {
        assert!(from_json.contains(&(name.to_vec(), true)), "{name:?}");
    }
    assert!(from_json.contains(&(b"gone".to_vec(), false)));
    assert_eq!(read(json).unwrap().intervals.len(), 6);
}

#[test]
fn events_after_an_epoch_with_all_its_decimals() {
    let json = format!("{META}{NEW},{DELETE}]}}");
    let since = |text| read_recent(json.as_bytes(), Some(Epoch::parse(text).unwrap())).unwrap();
    for (epoch, count) in [
        ("1", 2),
        ("2", 1),
        ("2.0000000000000000001", 1),
        ("3.25", 0),
    ] {
        assert_eq!(since(epoch).events.len(), count, "{epoch}");
    }
    let file = since("3.250");
    assert_eq!(file.newest.unwrap().to_string(), "3.25");
    assert!(since("1.5").is_complete && !since("1.4").is_complete);
}

#[test]
fn hostile_files_are_refused() {
    let of = |events: &str| format!("{META}{events}]}}");
    for (text, words) in [
        (String::new(), "not a list of events"),
        ("<html>\n".into(), "not a list of events"),
        (of(NEW), "cut off"),
        (format!("{META}{NEW},{DELETE}"), "cut off"),
        (of(&format!("{DELETE},{NEW}")), "not in order"),
        (of(&NEW.replace("d/a", "/a")), "unsafe path"),
        (of(&NEW.replace("d/a", "../a")), "unsafe path"),
        (of(&NEW.replace("d/a", "")), "unsafe path"),
        (of(&NEW.replace("d/a", &"a/".repeat(9000))), "unsafe path"),
        (of(&NEW.replace("new", "moved")), "unknown type"),
        (of(&NEW.replace("3.25", "nan")), "not a number"),
        (of(&NEW.replace("3.25", "-1")), "not a number"),
        (
            of(&NEW.replace("3.25", "99999999999999999999")),
            "not a number",
        ),
        ("{\"a\":".repeat(500), "malformed"),
        ("---\nmeta: \n".into(), "not a list of events in JSON"),
    ] {
        let error = read(&text).unwrap_err();
        assert!(
            error.contains(words),
            "{error}: {}",
            &text[..text.len().min(200)]
        );
    }
}
