//! The numbers that a commit states: of its entries, and of what changed.

use huai_git::find::split_before;

use super::cut::is_file;

/// The number of leaves, and their size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Regular files.
    pub files: u64,
    /// Symlinks.
    pub symlinks: u64,
    /// The bytes of all files.
    pub bytes: u64,
}

impl Totals {
    /// Add other totals.
    pub fn add(&mut self, more: Self) {
        self.files = self.files.saturating_add(more.files);
        self.symlinks = self.symlinks.saturating_add(more.symlinks);
        self.bytes = self.bytes.saturating_add(more.bytes);
    }

    /// Count the leaves in well-formed lines of a listing.
    pub fn of(leaves: &[u8]) -> Self {
        let mut totals = Self::default();
        for line in leaves.split_inclusive(|&byte| byte == b'\n') {
            let fields = split_before(line, b'\t').1;
            if is_file(fields) {
                totals.files = totals.files.saturating_add(1);
                let size = fields.get(1..).unwrap_or_default();
                totals.bytes = totals.bytes.saturating_add(decimal(size));
            } else {
                totals.symlinks = totals.symlinks.saturating_add(1);
            }
        }
        totals
    }
}

/// The numbers of changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// New paths.
    pub added: u64,
    /// Removed paths.
    pub removed: u64,
    /// Entries that differ.
    pub changed: u64,
    /// Unchanged entries of a moved directory, including the directory itself.
    pub moved: u64,
    /// The sizes of the files that are new or have other content.
    pub new_bytes: u64,
}

impl Counts {
    /// Count one change of an entry, which was there before, is there now, or both.
    pub(crate) fn add(&mut self, was: bool, is: bool) {
        let count = match (was, is) {
            (false, _) => &mut self.added,
            (_, false) => &mut self.removed,
            _ => &mut self.changed,
        };
        *count = count.saturating_add(1);
    }

    /// Add other counts.
    pub(crate) fn join(&mut self, more: Self) {
        self.added = self.added.saturating_add(more.added);
        self.removed = self.removed.saturating_add(more.removed);
        self.changed = self.changed.saturating_add(more.changed);
        self.moved = self.moved.saturating_add(more.moved);
        self.new_bytes = self.new_bytes.saturating_add(more.new_bytes);
    }
}

/// Parse the number with which `text` begins.
pub(crate) fn decimal(text: &[u8]) -> u64 {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number: u64, &digit| {
        let unit = u64::from(digit.saturating_sub(b'0'));
        number.saturating_mul(10).saturating_add(unit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_symlinks_and_bytes_are_counted() {
        let leaves = b"a\t12\t5\tm600\nb\t>12\t5\n\\x0a9\t30\t-7.5\th../a\n";
        let totals = Totals::of(leaves);
        assert_eq!((totals.files, totals.symlinks, totals.bytes), (2, 1, 42));
        assert_eq!(Totals::of(b""), Totals::default());
    }
}
