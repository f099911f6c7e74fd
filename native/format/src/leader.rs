//! How a hardlink names the leader of its group (FORMAT.md, "Lines").

use crate::error::{Error, Result};
use crate::path::{RelPath, parent, quote_bytes};

/// The leader that `relative` names, seen from the hardlink `name` in `directory`.
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
    // It goes up no further than it has to.
    let mut parts = rest.split(|&byte| byte == b'/');
    let returns = left.is_some() && parts.next() == left && parts.next().is_some();
    let path = directory.join(name);
    if leader.is_root() || returns || !precedes(leader.as_bytes(), path.as_bytes()) {
        let shown = quote_bytes(relative.get(..200).unwrap_or(relative));
        return Err(Error::new(format!("not a canonical hardlink: {shown}")));
    }
    Ok(leader)
}

/// Whether one leaf comes before another in tree order: leaves, then subdirectories.
fn precedes(leader: &[u8], path: &[u8]) -> bool {
    let mut here = leader.split(|&byte| byte == b'/').peekable();
    let mut there = path.split(|&byte| byte == b'/').peekable();
    while let (Some(one), Some(other)) = (here.next(), there.next()) {
        let (last_one, last_other) = (here.peek().is_none(), there.peek().is_none());
        if last_one != last_other {
            return last_one && one != other;
        }
        if one != other {
            return one < other;
        }
    }
    false
}
