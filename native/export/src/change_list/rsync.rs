//! The output of rsync for one path: itemized (rsync(1), `--itemize-changes`), in its log file,
//! or with `--verbose`.

use std::borrow::Cow;

use huai_git::find::split_before;

/// The first letters of a code: the kind of update, and the type of the entry.
const UPDATES: &[u8] = b"<>ch.";
const KINDS: &[u8] = b"fdLDS";
/// The letters of attributes; a blank means no difference.
const ATTRIBUTES: &[u8] = b".+? cstTpoguaxzbn";
/// The number of attributes that versions of rsync write, newest first.
const COUNTS: [usize; 3] = [9, 8, 7];
/// The mark of deletions in place of a code, padded to the same length.
const DELETING: &[u8] = b"*deleting   ";
/// The same mark where codes are two letters shorter; some are one letter shorter.
const DELETING_OLD: &[u8] = b"*deleting ";

const SYMLINK: &[u8] = b" -> ";
const HARDLINK: &[u8] = b" => ";
/// The most readings of a line that are tried, besides the whole line.
const WAYS: usize = 64;

/// The content of a line.
pub(super) enum RsyncLine<'a> {
    /// The changed path; with several readings, one of them is right.
    Names(Vec<&'a [u8]>),
    /// A path without a difference (`-ii`).
    Unchanged,
    /// Any other line.
    Other,
}

/// Strip `YYYY/MM/DD HH:MM:SS [PID] `; the boolean is true if it was there.
pub(super) fn without_prefix(line: &[u8]) -> (&[u8], bool) {
    let pattern = b"dddd/dd/dd dd:dd:dd [";
    let Some((head, rest)) = line.split_at_checked(pattern.len()) else {
        return (line, false);
    };
    let fits = |(byte, wanted): (&u8, &u8)| match wanted {
        b'd' => byte.is_ascii_digit(),
        _ => byte == wanted,
    };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let after = rest.get(digits..).and_then(|rest| rest.strip_prefix(b"] "));
    match after.filter(|_| digits > 0 && head.iter().zip(pattern).all(fits)) {
        Some(after) => (after, true),
        None => (line, false),
    }
}

/// Parse a line as `--itemize-changes` prints it, a deletion too; `Other` if it has another form.
pub(super) fn read_line(line: &[u8]) -> RsyncLine<'_> {
    if let Some(name) = line.strip_prefix(DELETING).filter(|name| !name.is_empty()) {
        return RsyncLine::Names(vec![name]);
    }
    if let Some(name) = line.strip_prefix(DELETING_OLD) {
        let names = [Some(name), name.strip_prefix(b" ")];
        let names = names.into_iter().flatten().filter(|name| !name.is_empty());
        return RsyncLine::Names(names.collect());
    }
    let [update, kind, rest @ ..] = line else {
        return RsyncLine::Other;
    };
    if !UPDATES.contains(update) || !KINDS.contains(kind) {
        return RsyncLine::Other;
    }
    for count in COUNTS {
        let Some((attributes, rest)) = rest.split_at_checked(count) else {
            continue;
        };
        let Some(name) = rest.strip_prefix(b" ").filter(|name| !name.is_empty()) else {
            continue;
        };
        if !attributes.iter().all(|byte| ATTRIBUTES.contains(byte)) {
            continue;
        }
        if *update == b'.' && attributes.iter().all(|byte| *byte == b' ') {
            return RsyncLine::Unchanged;
        }
        return RsyncLine::Names(match (update, kind) {
            (b'h', _) | (_, b'L') => names_of(name),
            _ => vec![name],
        });
    }
    RsyncLine::Other
}

/// Return the possible names in `text`, after which a symlink's target or a hardlink's leader may
/// follow: all of it first, and leaders too.
pub(super) fn names_of(text: &[u8]) -> Vec<&[u8]> {
    let mut names = vec![text];
    names.extend(before_each(text, SYMLINK));
    for name in before_each(text, HARDLINK) {
        let behind = name.len().saturating_add(HARDLINK.len());
        names.push(name);
        names.extend(text.get(behind..).filter(|leader| !leader.is_empty()));
    }
    names
}

/// Replace the bytes that rsync spells `\#ooo`.
pub(super) fn unescape_octal(name: &[u8]) -> Cow<'_, [u8]> {
    if !name.windows(2).any(|pair| pair == b"\\#") {
        return Cow::Borrowed(name);
    }
    let mut plain = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.strip_prefix(b"#").filter(|_| byte == b'\\');
        let octal = digits.and_then(<[u8]>::split_first_chunk);
        let escaped = octal.and_then(|(digits, after)| Some((octal_byte(*digits)?, after)));
        let (value, after) = escaped.unwrap_or((byte, after));
        plain.push(value);
        rest = after;
    }
    Cow::Owned(plain)
}

/// Return the byte that three octal digits spell; `None` for other bytes, and above 255.
pub(super) fn octal_byte(digits: [u8; 3]) -> Option<u8> {
    digits.iter().try_fold(0_u8, |value, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 8)?;
        value.checked_mul(8)?.checked_add(digit)
    })
}

/// Return true for a message of rsync that is not about one path, by its beginning or end; a path may look like one.
pub(super) fn is_message(line: &[u8]) -> bool {
    const BEGINS: [&[u8]; 24] = [
        b"sending incremental file list",
        b"receiving incremental file list",
        b"receiving file list",
        b"building file list",
        b"sent ",
        b"total size is ",
        b"total: matches=",
        b"created directory ",
        b"delta-transmission ",
        b"opening connection ",
        b"rsync: ",
        b"rsync error: ",
        b"rsync warning: ",
        b"file has vanished: ",
        b"IO error encountered",
        b"cannot delete non-empty directory: ",
        b"skipping ",
        b"deleting ",
        b"Number of ",
        b"Total ",
        b"Literal data: ",
        b"Matched data: ",
        b"File list ",
        b"*** ",
    ];
    BEGINS.iter().any(|begin| line.starts_with(begin)) || line.ends_with(b" is uptodate")
}

/// Return the text before each of the first occurrences of `arrow`, unless it is empty.
fn before_each<'a>(text: &'a [u8], arrow: &[u8]) -> Vec<&'a [u8]> {
    let mut names = Vec::new();
    let Some((&last, _)) = arrow.split_last() else {
        return names;
    };
    let mut end: usize = 0;
    while names.len() < WAYS {
        let (before, rest) = split_before(text.get(end..).unwrap_or_default(), last);
        if rest.is_empty() {
            break;
        }
        end = end.saturating_add(before.len()).saturating_add(1);
        let head = text.get(..end).unwrap_or_default();
        if let Some(name) = head.strip_suffix(arrow).filter(|name| !name.is_empty()) {
            names.push(name);
        }
    }
    names
}
