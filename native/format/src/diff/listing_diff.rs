//! Compares two listings of one directory, or reports one that has no counterpart.

use huai_git::error::Result;

use super::moves::Move;
use crate::entries::{Body, Bookmark, Entry, Leaves, decode_directory};
use crate::path::RelPath;
use crate::snapshots::Listing;

/// A receiver of differences.
pub trait Sink {
    /// Return true if a batch is complete; a few more differences may follow.
    fn is_full(&self) -> bool;

    /// Report a new, removed or changed entry, `None` on the side that lacks it; that of
    /// `directory` itself has an empty name.
    fn change(&mut self, directory: &RelPath, old: Option<&Entry<'_>>, new: Option<&Entry<'_>>);

    /// Report a moved directory; the differences in it follow later.
    fn moved(&mut self, old: &RelPath, new: &RelPath);
}

/// A directory on one side or both, and the progress of its comparison.
#[derive(Debug)]
pub struct ListingPair {
    old: Option<Listing>,
    new: Option<Listing>,
    /// The move that brought the old directory to its path.
    moved: Option<Move>,
    reached: Option<(Bookmark, Bookmark)>,
}

impl ListingPair {
    /// Compare listings of one path, `None` for a side without it; `moved` is set if the old one
    /// was at another path.
    pub fn new(old: Option<Listing>, new: Option<Listing>, moved: Option<Move>) -> Self {
        Self {
            old,
            new,
            moved,
            reached: None,
        }
    }

    /// Report the leaves of a listing as new, without the directory itself.
    pub fn leaves(new: Listing) -> Self {
        let start = Bookmark::start(&new.leaves, &new.digests);
        Self {
            old: None,
            moved: None,
            reached: Some((Bookmark::start(b"", b""), start)),
            new: Some(new),
        }
    }

    /// Compare until the sink is full; returns true at the end.  The directory itself comes first, then its leaves in
    /// name order.
    pub fn advance(&mut self, sink: &mut impl Sink) -> Result<bool> {
        let Some(path) = self
            .old
            .as_ref()
            .or(self.new.as_ref())
            .map(|each| each.path.clone())
        else {
            return Ok(true);
        };
        if self.reached.is_none() {
            self.compare_attributes(&path, sink)?;
            if self.has_equal_leaves() {
                return Ok(true);
            }
        }
        let (from_old, from_new) = self.reached.take().unzip();
        // Its hardlinks name their leaders from the former path.
        let moved = self.moved.as_ref();
        let before = moved.map_or_else(|| path.clone(), |moved| moved.before(&path));
        let mut old = Reading::new(&before, self.old.as_ref(), from_old.as_ref())?;
        let mut new = Reading::new(&path, self.new.as_ref(), from_new.as_ref())?;
        while !sink.is_full() {
            let order = match (&old.entry, &new.entry) {
                (None, None) => return Ok(true),
                (Some(one), Some(other)) => one.name.cmp(&other.name),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
            };
            let mut before = if order.is_le() {
                old.advance_entry()?
            } else {
                None
            };
            let after = if order.is_ge() {
                new.advance_entry()?
            } else {
                None
            };
            if let (Some(moved), Some(before)) = (moved, &mut before) {
                translate_link(moved, before);
            }
            if differ(before.as_ref(), after.as_ref()) {
                sink.change(&path, before.as_ref(), after.as_ref());
            }
        }
        let reached = (old.place.bookmark(), new.place.bookmark());
        self.reached = Some(reached);
        Ok(false)
    }

    /// Report to `sink` if the attributes of the directory differ, or one side lacks it.
    fn compare_attributes(&self, path: &RelPath, sink: &mut impl Sink) -> Result<()> {
        let old = self.old.as_ref().map(|each| &each.attributes);
        let new = self.new.as_ref().map(|each| &each.attributes);
        if old.map(|text| &**text) == new.map(|text| &**text) {
            return Ok(());
        }
        let old = old.map(|text| decode_directory(path, text)).transpose()?;
        let new = new.map(|text| decode_directory(path, text)).transpose()?;
        if differ(old.as_ref(), new.as_ref()) {
            sink.change(path, old.as_ref(), new.as_ref());
        }
        Ok(())
    }

    fn has_equal_leaves(&self) -> bool {
        match (&self.old, &self.new) {
            (Some(old), Some(new)) => *old.leaves == *new.leaves && *old.digests == *new.digests,
            _ => false,
        }
    }
}

/// The leaves of one side, with the next one decoded.
struct Reading<'a> {
    leaves: Leaves<'a>,
    place: Leaves<'a>,
    entry: Option<Entry<'a>>,
}

impl<'a> Reading<'a> {
    /// Begin at `from`, or else at the first leaf; without a listing there are no leaves.
    fn new(
        path: &'a RelPath,
        listing: Option<&'a Listing>,
        from: Option<&'a Bookmark>,
    ) -> Result<Self> {
        let (text, digests): (&[u8], &[u8]) =
            listing.map_or((b"", b""), |each| (&each.leaves, &each.digests));
        let leaves = match from {
            Some(from) => Leaves::resume(path, text, digests, from),
            None => Leaves::new(path, text, digests),
        };
        let mut reading = Self {
            place: leaves.clone(),
            leaves,
            entry: None,
        };
        reading.advance_entry()?;
        Ok(reading)
    }

    /// Return the next entry, `None` at the end, and decode the one after it.
    fn advance_entry(&mut self) -> Result<Option<Entry<'a>>> {
        self.place = self.leaves.clone();
        let next = self.leaves.next().transpose()?;
        Ok(std::mem::replace(&mut self.entry, next))
    }
}

/// Replace the leader of a hardlink by the one that its line names at the new path.
fn translate_link(moved: &Move, entry: &mut Entry<'_>) {
    if let Body::File { link, .. } = &mut entry.body {
        *link = link.take().map(|leader| moved.translate_leader(leader));
    }
}

/// Return true unless both are there and equal.
fn differ(old: Option<&Entry<'_>>, new: Option<&Entry<'_>>) -> bool {
    match (old, new) {
        (Some(old), Some(new)) => old.differs(new),
        _ => true,
    }
}
