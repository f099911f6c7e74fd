//! The output of `ls -lR`, in the C locale and in UTC.
//!
//! The line of a directory precedes those of its files, so all directories are gathered first
//! (some tens of bytes each), with the number of names of each hardlink group.  Metadata have no
//! block counts: a file is taken to fill blocks of 4 KiB, a directory to be one block.  A control
//! character is shown as `?`, as `ls` does on a terminal.

use std::collections::HashMap;
use std::io::Write;

use huai_format::entries::{Body, Entry, Leaves, decode_directory};
use huai_format::path::{RelPath, basename, is_within};
use huai_format::snapshots::Listing;
use huai_git::error::Result;

use super::calendar::moment;
use super::{Exported, seconds};

const BLOCK: u64 = 4_096;
const KIBIBYTES: u64 = 4;
/// The length in bytes from which a symlink's target has a block of its own, on ext4.
const LONG_TARGET: usize = 60;
/// Half a year in seconds, as in `ls`: older times are shown with the year.
const RECENT: i64 = 31_556_952 / 2;
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// All directories of a snapshot, in tree order.
#[derive(Debug, Default)]
pub struct Directories {
    gathered: Vec<Gathered>,
    /// Their last components, concatenated.
    names: Vec<u8>,
    /// The positions of the directories that contain the last one.
    open: Vec<(usize, Vec<u8>)>,
    owners: Vec<Vec<u8>>,
    /// The further names of each hardlink group, by its leader.
    links: HashMap<Vec<u8>, u64>,
}

#[derive(Debug)]
struct Gathered {
    name_end: usize,
    mtime: i64,
    mode: u16,
    owner: usize,
    group: usize,
    /// The number of subdirectories.
    children: u64,
    /// The position of the first directory that is not below this one.
    after: usize,
}

impl Directories {
    /// Add the next directory, and count the names of hardlink groups in it.
    pub fn gather(&mut self, listing: &Listing) -> Result<()> {
        let path = listing.path.as_bytes();
        let entry = decode_directory(&listing.path, &listing.attributes)?;
        while self
            .open
            .last()
            .is_some_and(|(_, above)| !is_within(path, above))
        {
            self.close();
        }
        if let Some((above, _)) = self.open.last() {
            if let Some(above) = self.gathered.get_mut(*above) {
                above.children = above.children.saturating_add(1);
            }
        }
        let (owner, group) = (self.number(&entry.owner), self.number(&entry.group));
        self.names.extend_from_slice(basename(path));
        self.open.push((self.gathered.len(), path.to_vec()));
        self.gathered.push(Gathered {
            name_end: self.names.len(),
            mtime: entry.mtime,
            mode: entry.mode,
            owner,
            group,
            children: 0,
            after: 0,
        });
        for leaf in Leaves::new(&listing.path, &listing.leaves, b"") {
            if let Body::File {
                link: Some(leader), ..
            } = leaf?.body
            {
                let count = self.links.entry(leader.as_bytes().to_vec()).or_default();
                *count = count.saturating_add(1);
            }
        }
        Ok(())
    }

    /// Store that the innermost open directory ends with the last one that was gathered.
    fn close(&mut self) {
        let after = self.gathered.len();
        if let Some((place, _)) = self.open.pop() {
            if let Some(closed) = self.gathered.get_mut(place) {
                closed.after = after;
            }
        }
    }

    /// Return the number of an owner, which is added if new; there are few.
    fn number(&mut self, owner: &[u8]) -> usize {
        let position = self.owners.iter().position(|each| each == owner);
        position.unwrap_or_else(|| {
            self.owners.push(owner.to_vec());
            self.owners.len().saturating_sub(1)
        })
    }

    /// Return name, position and record of the subdirectories of the directory at `place`, in name order.
    fn children(&self, place: usize) -> impl Iterator<Item = (&[u8], &Gathered)> {
        let end = self.gathered.get(place).map_or(0, |each| each.after);
        let mut next = place.saturating_add(1);
        std::iter::from_fn(move || {
            let gathered = self.gathered.get(next).filter(|_| next < end)?;
            let before = next.checked_sub(1).and_then(|at| self.gathered.get(at));
            let begin = before.map_or(0, |each| each.name_end);
            next = gathered.after;
            Some((self.names.get(begin..gathered.name_end)?, gathered))
        })
    }
}

/// A formatter of the text, from directories in tree order.
#[derive(Debug)]
pub struct Ls {
    directories: Directories,
    exported: Exported,
    place: usize,
}

/// One line before its alignment.
struct Row<'a> {
    name: &'a [u8],
    kind: char,
    mode: u16,
    links: u64,
    owner: &'a [u8],
    group: &'a [u8],
    size: u64,
    mtime: i64,
    blocks: u64,
    target: Option<&'a [u8]>,
}

impl Ls {
    /// Format everything but `exported`, with times relative to the time of `exported`.
    pub fn new(mut directories: Directories, exported: Exported) -> Self {
        while !directories.open.is_empty() {
            directories.close();
        }
        Self {
            directories,
            exported,
            place: 0,
        }
    }

    /// Append the text of the next directory to `out`, unless it is hidden by a name with a dot;
    /// all directories come, in the order in which they were gathered.
    pub fn put_listing(&mut self, listing: &Listing, out: &mut Vec<u8>) -> Result<()> {
        let path = listing.path.as_bytes();
        let place = self.place;
        self.place = place.saturating_add(1);
        if path.starts_with(b".") || path.windows(2).any(|pair| pair == b"/.") {
            return Ok(());
        }
        let mut columns = Columns::default();
        self.rows(listing, place, |row| columns.fit(row))?;
        let begin: &[u8] = if path.is_empty() { b"." } else { b"\n./" };
        out.extend_from_slice(begin);
        put_shown(path, out);
        // Writing to a vector cannot fail.
        let _ = writeln!(out, ":\ntotal {}", columns.blocks);
        self.rows(listing, place, |row| {
            columns.put_row(row, self.exported.time, out);
        })
    }

    /// Call `take` with each line of the directory at `place`, ordered by name, without exported files and names that
    /// begin with a dot.
    fn rows(&self, listing: &Listing, place: usize, mut take: impl FnMut(&Row<'_>)) -> Result<()> {
        let path = &listing.path;
        let is_visible = |name: &[u8]| !name.starts_with(b".");
        let mut below = self
            .directories
            .children(place)
            .filter(|(name, _)| is_visible(name))
            .peekable();
        for leaf in Leaves::new(path, &listing.leaves, b"") {
            let leaf = leaf?;
            while let Some((name, found)) = below.next_if(|(name, _)| *name < &*leaf.name) {
                take(&self.directory(path, name, found));
            }
            if is_visible(&leaf.name) && !self.exported.names(path, &leaf.name) {
                take(&self.leaf(path, &leaf));
            }
        }
        for (name, found) in below {
            take(&self.directory(path, name, found));
        }
        Ok(())
    }

    /// Return the row of a file or symlink.
    fn leaf<'a>(&'a self, directory: &RelPath, leaf: &'a Entry<'_>) -> Row<'a> {
        let (kind, size, links, blocks, target) = match &leaf.body {
            Body::File { size, link, .. } => {
                let own = (link.is_none() && !self.directories.links.is_empty())
                    .then(|| directory.join(&leaf.name));
                let leader = link.as_ref().or(own.as_ref()).map(RelPath::as_bytes);
                let further = leader.and_then(|path| self.directories.links.get(path));
                let links = further.map_or(1, |further| further.saturating_add(1));
                let blocks = size.div_ceil(BLOCK).saturating_mul(KIBIBYTES);
                ('-', *size, links, blocks, None)
            }
            Body::Symlink { target } => {
                let size = target.len().try_into().unwrap_or(u64::MAX);
                let blocks = if target.len() < LONG_TARGET {
                    0
                } else {
                    KIBIBYTES
                };
                ('l', size, 1, blocks, Some(&**target))
            }
            Body::Directory => ('d', BLOCK, 2, KIBIBYTES, None),
        };
        Row {
            name: &leaf.name,
            kind,
            mode: leaf.mode,
            links,
            owner: &leaf.owner,
            group: &leaf.group,
            size,
            mtime: seconds(leaf.mtime),
            blocks,
            target,
        }
    }

    /// Return the row of a subdirectory; if it has exported files, with the time for these.
    fn directory<'a>(&'a self, above: &RelPath, name: &'a [u8], gathered: &Gathered) -> Row<'a> {
        let owner = |number: usize| {
            self.directories
                .owners
                .get(number)
                .map_or(&b""[..], |it| it)
        };
        let exports = self.exported.holds(above.as_bytes())
            && self.exported.holds(above.join(name).as_bytes());
        Row {
            name,
            kind: 'd',
            mode: gathered.mode,
            links: gathered.children.saturating_add(2),
            owner: owner(gathered.owner),
            group: owner(gathered.group),
            size: BLOCK,
            mtime: if exports {
                self.exported.time
            } else {
                seconds(gathered.mtime)
            },
            blocks: KIBIBYTES,
            target: None,
        }
    }
}

/// The column widths of a directory, and the KiB that its files take.
#[derive(Debug, Default)]
struct Columns {
    links: usize,
    owners: usize,
    groups: usize,
    sizes: usize,
    blocks: u64,
}

impl Columns {
    /// Widen the columns for a row, and add its blocks.
    fn fit(&mut self, row: &Row<'_>) {
        self.links = self.links.max(digits(row.links));
        self.owners = self.owners.max(shown_owner(row.owner).0.len());
        self.groups = self.groups.max(shown_owner(row.group).0.len());
        self.sizes = self.sizes.max(digits(row.size));
        self.blocks = self.blocks.saturating_add(row.blocks);
    }

    /// Append a row to `out`.
    fn put_row(&self, row: &Row<'_>, now: i64, out: &mut Vec<u8>) {
        let (links, sizes) = (self.links, self.sizes);
        let _ = write!(
            out,
            "{} {:links$} ",
            permissions(row.kind, row.mode),
            row.links
        );
        put_owner(row.owner, self.owners, out);
        put_owner(row.group, self.groups, out);
        let _ = write!(out, "{:sizes$} ", row.size);
        put_time(row.mtime, now, out);
        put_shown(row.name, out);
        if let Some(target) = row.target {
            out.extend_from_slice(b" -> ");
            put_shown(target, out);
        }
        out.push(b'\n');
    }
}

/// Return an owner as `ls` shows it, and true if it is a number.
fn shown_owner(owner: &[u8]) -> (&[u8], bool) {
    owner
        .strip_prefix(b"#")
        .map_or((owner, false), |number| (number, true))
}

/// Append an owner in its column, numbers to the right, names to the left.
fn put_owner(owner: &[u8], width: usize, out: &mut Vec<u8>) {
    let (text, is_number) = shown_owner(owner);
    let padding = width.saturating_sub(text.len());
    let spaces = std::iter::repeat_n(b' ', padding);
    if is_number {
        out.extend(spaces);
        put_shown(text, out);
    } else {
        put_shown(text, out);
        out.extend(spaces);
    }
    out.push(b' ');
}

/// Append a time as `ls` does: with the hour if recent, or else with the year.
fn put_time(time: i64, now: i64, out: &mut Vec<u8>) {
    let date = moment(time);
    let month = usize::try_from(date.month)
        .ok()
        .and_then(|at| MONTHS.get(at));
    let (month, day) = (month.unwrap_or(&"???"), date.day);
    let _ = if now.saturating_sub(RECENT) < time && time <= now {
        write!(out, "{month} {day:2} {:02}:{:02} ", date.hour, date.minute)
    } else {
        write!(out, "{month} {day:2}  {:04} ", date.year)
    };
}

/// Append text, with `?` for control characters.
fn put_shown(text: &[u8], out: &mut Vec<u8>) {
    out.extend(text.iter().map(|&byte| {
        if byte < 0x20 || byte == 0x7f {
            b'?'
        } else {
            byte
        }
    }));
}

/// Format a mode like `drwxr-sr-t`.
fn permissions(kind: char, mode: u16) -> String {
    let bit = |mask: u16, set: char| if mode & mask == 0 { '-' } else { set };
    let special = |execute: u16, mask: u16, both: char, alone: char| match (
        mode & mask != 0,
        mode & execute != 0,
    ) {
        (true, true) => both,
        (true, false) => alone,
        (false, true) => 'x',
        (false, false) => '-',
    };
    [
        kind,
        bit(0o400, 'r'),
        bit(0o200, 'w'),
        special(0o100, 0o4000, 's', 'S'),
        bit(0o040, 'r'),
        bit(0o020, 'w'),
        special(0o010, 0o2000, 's', 'S'),
        bit(0o004, 'r'),
        bit(0o002, 'w'),
        special(0o001, 0o1000, 't', 'T'),
    ]
    .into_iter()
    .collect()
}

fn digits(number: u64) -> usize {
    let digits = number.checked_ilog10().unwrap_or(0).saturating_add(1);
    usize::try_from(digits).unwrap_or(1)
}
