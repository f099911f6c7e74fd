//! The output of `zfs diff -FH` (zfs-diff(8)): change, type, path and a new path or a change of the
//! number of links, separated by tabs.
//!
//! Blanks, backslashes and all bytes but printable ASCII are spelled `\` with four octal digits; with
//! `-h` none are.

use super::reading::Reading;
use super::rsync::octal_byte;

/// The types of files (`-F`).
const KINDS: &[u8] = b"BC/>|@P=F?";
/// The place of extended attributes, which no commit has.
const ATTRIBUTES: &[u8] = b"/<xattrdir>";
/// The place of a file that was deleted while it was open.
const DELETED: &[u8] = b"(on_delete_queue)";

/// Parse a line to the paths that it may change; `None` if it has another form, none for an extended attribute or a
/// deleted file.
///
/// The files below a renamed directory have no lines, and something else may be at its old path.
pub(super) fn read_line(line: &[u8]) -> Option<Vec<Reading>> {
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b'\t').collect();
    let (change, paths) = match &*fields {
        [change, [kind], paths @ ..] if KINDS.contains(kind) && !paths.is_empty() => {
            (*change, paths)
        }
        [change, paths @ ..] => (*change, paths),
        [] => return None,
    };
    let (paths, all_below) = match (change, paths) {
        (b"+" | b"-" | b"M", [path]) => (vec![*path], false),
        (b"M", [path, links]) if links.starts_with(b"(") => (vec![*path], false),
        (b"R", [old, new]) => (vec![*old, *new], true),
        _ => return None,
    };
    let is_in_tree = |path: &&[u8]| {
        !path.ends_with(DELETED)
            && !path
                .windows(ATTRIBUTES.len())
                .any(|part| part == ATTRIBUTES)
    };
    let paths = paths.into_iter().filter(is_in_tree);
    Some(paths.flat_map(|path| readings(path, all_below)).collect())
}

/// Return the path; before it the path without escapes, if they differ: either may be meant.
fn readings(path: &[u8], all_below: bool) -> Vec<Reading> {
    let plain = unescape(path).filter(|plain| plain != path);
    let perhaps = plain.is_some();
    let reading = |path| Reading {
        path,
        all_below,
        perhaps,
    };
    plain
        .into_iter()
        .chain([path.to_vec()])
        .map(reading)
        .collect()
}

/// Replace each `\0` with three octal digits by its byte; `None` if something else follows a backslash.
fn unescape(path: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte == b'\\' {
            let (digits, after) = after.strip_prefix(b"0")?.split_first_chunk()?;
            plain.push(octal_byte(*digits)?);
            rest = after;
        } else {
            plain.push(byte);
        }
    }
    Some(plain)
}
