//! The output of `btrfs receive --dump`: command, path and arguments, separated by blanks.
//!
//! Paths begin with the received snapshot (`./NAME`).  A stream makes files under temporary names
//! (`o257-8-0`), and names the path of that moment.  The last rename of a file, or of a
//! directory above it, has the path that remains; so everything below both paths of a rename counts.

use huai_format::path::below;

use super::reading::Reading;
use super::rsync::octal_byte;

/// The commands whose path may be a temporary one.
const NAMES: [&[u8]; 8] = [
    b"mkfile", b"mkdir", b"mknod", b"mkfifo", b"mksock", b"symlink", b"unlink", b"rmdir",
];
/// The commands that change a file or a directory.
const CHANGES: [&[u8]; 14] = [
    b"write",
    b"encoded_write",
    b"update_extent",
    b"clone",
    b"truncate",
    b"fallocate",
    b"chmod",
    b"chown",
    b"utimes",
    b"otime",
    b"fileattr",
    b"enable_verity",
    b"set_xattr",
    b"remove_xattr",
];

/// Parse a line to the paths that it may change; `None` if it has another form.  The first line sets `snapshot`, the path of
/// the received snapshot.
pub(super) fn read_line(line: &[u8], snapshot: &mut Option<Vec<u8>>) -> Option<Vec<Reading>> {
    let (command, rest) = take_field(line)?;
    let (path, rest) = take_field(rest)?;
    if matches!(&*command, b"snapshot" | b"subvol") {
        *snapshot = Some(path);
        return Some(Vec::new());
    }
    let within = |path: &[u8]| {
        let path = below(path, snapshot.as_deref()?)?;
        Some(path.strip_prefix(b"/").unwrap_or(path).to_vec())
    };
    let reading = |path, all_below, perhaps| Reading {
        path,
        all_below,
        perhaps,
    };
    let path = within(&path)?;
    let destination = || {
        // Some versions escape no blanks here: then the path has no certain end.
        let (field, after) = take_field(rest)?;
        let is_last = after.trim_ascii().is_empty();
        Some(field.strip_prefix(b"dest=").filter(|_| is_last)?.to_vec())
    };
    Some(match &*command {
        b"rename" => vec![
            reading(path, true, true),
            reading(within(&destination()?)?, true, true),
        ],
        b"link" => vec![
            reading(path, false, true),
            reading(destination()?, false, true),
        ],
        name if NAMES.contains(&name) => vec![reading(path, false, true)],
        name if CHANGES.contains(&name) => vec![reading(path, false, false)],
        _ => return None,
    })
}

/// Return the first field, without escapes, and the rest; `None` without one, or for an unknown
/// escape.
fn take_field(line: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut rest = line.trim_ascii_start();
    let mut field = Vec::new();
    while let Some((&byte, after)) = rest.split_first().filter(|(byte, _)| **byte != b' ') {
        rest = after;
        if byte != b'\\' {
            field.push(byte);
            continue;
        }
        if let Some(byte) = after.first_chunk().and_then(|digits| octal_byte(*digits)) {
            field.push(byte);
            rest = after.get(3..).unwrap_or_default();
            continue;
        }
        let (letter, after) = after.split_first()?;
        field.push(match letter {
            b'a' => 7,
            b'b' => 8,
            b't' => b'\t',
            b'n' => b'\n',
            b'v' => 11,
            b'f' => 12,
            b'r' => b'\r',
            b'e' => 27,
            b' ' | b'\\' => *letter,
            _ => return None,
        });
        rest = after;
    }
    (!field.is_empty()).then_some((field, rest))
}
