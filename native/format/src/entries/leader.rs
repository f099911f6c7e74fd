//! References of hardlinks to the leaders of their groups (FORMAT.md, "Lines").

use huai_git::error::{Error, Result};
use huai_git::find::split_before;

use crate::escape::put_escaped;
use crate::path::{RelPath, parent, quote_bytes};

/// Return the leader for `relative`, as stated by the hardlink `name` in `directory`; an error
/// unless it is in the module, canonical, and before the link in tree order.
pub(crate) fn resolve(relative: &[u8], directory: &RelPath, name: &[u8]) -> Result<RelPath> {
    let (mut base, mut rest) = (directory.as_bytes(), relative);
    let mut left: Option<&[u8]> = None;
    while let Some(above) = rest.strip_prefix(b"../") {
        if base.is_empty() {
            return Err(Error::new("a hardlink leads out of the module"));
        }
        left = base.rsplit(|&byte| byte == b'/').next();
        (base, rest) = (parent(base), above);
    }
    let leader = if base.is_empty() {
        rest.to_vec()
    } else {
        [base, b"/", rest].concat()
    };
    let leader = RelPath::parse(&leader)?;
    // It goes up no further than necessary.
    let mut parts = rest.split(|&byte| byte == b'/');
    let returns = left.is_some() && parts.next() == left && parts.next().is_some();
    let path = directory.join(name);
    if leader.is_root() || returns || !precedes(leader.as_bytes(), path.as_bytes()) {
        let start = quote_bytes(relative.get(..200).unwrap_or(relative));
        return Err(Error::new(format!("not a canonical hardlink: {start}")));
    }
    Ok(leader)
}

/// Append the field, including its tab, that makes a leaf of `directory` a hardlink.
///
/// The leader is stated relative to that directory, so that a directory that moves together with
/// the whole group keeps its manifests.
pub fn put_link(line: &mut Vec<u8>, directory: &[u8], leader: &[u8]) {
    line.extend_from_slice(b"\th");
    let (mut here, mut there) = (directory, leader);
    while let (Some((one, below)), Some((other, rest))) = (split_first(here), split_first(there)) {
        if one != other || rest.is_empty() {
            break;
        }
        (here, there) = (below, rest);
    }
    while let Some((_, below)) = split_first(here) {
        line.extend_from_slice(b"../");
        here = below;
    }
    put_escaped(line, there);
}

/// Split a path after its first component; `None` if it is empty.
fn split_first(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let (first, rest) = split_before(path, b'/');
    (!first.is_empty()).then(|| (first, rest.get(1..).unwrap_or_default()))
}

/// Return true if one leaf precedes another in tree order: leaves come before subdirectories.
fn precedes(leader: &[u8], path: &[u8]) -> bool {
    let mut leading = leader.split(|&byte| byte == b'/').peekable();
    let mut following = path.split(|&byte| byte == b'/').peekable();
    while let (Some(one), Some(other)) = (leading.next(), following.next()) {
        let (last_one, last_other) = (leading.peek().is_none(), following.peek().is_none());
        if last_one != last_other {
            return last_one && one != other;
        }
        if one != other {
            return one < other;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_is_resolved() {
        let cases: [(&[u8], &[u8], &[u8]); 6] = [
            (b"", b"a", b"a"),
            (b"x", b"a", b"../a"),
            (b"x/y", b"x/a", b"../a"),
            (b"x/y", b"w/y/a\n", b"../../w/y/a\\x0a"),
            (b"x/y", b"x/y/a", b"a"),
            (b"x/y/z", b"x/m", b"../../m"),
        ];
        for (directory, leader, relative) in cases {
            let mut line = Vec::new();
            put_link(&mut line, directory, leader);
            assert_eq!(line, [b"\th", relative].concat());
            let directory = RelPath::parse(directory).unwrap();
            let relative = crate::escape::unescape(relative).unwrap();
            let resolved = resolve(&relative, &directory, b"zz").unwrap();
            assert_eq!(resolved.as_bytes(), leader);
        }
    }
}
