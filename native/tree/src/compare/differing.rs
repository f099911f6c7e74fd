//! The attributes in which what is there may differ from what should be.

/// The attributes in which a path may differ: one bit each, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Attribute {
    /// It is something else.
    Type,
    /// Of a file.
    Size,
    /// The time of the last change.
    Mtime,
    /// The permission bits.
    Mode,
    /// The user.
    Owner,
    /// The group.
    Group,
    /// Of a symlink.
    Target,
    /// It is not another name of the file that it should be one of.
    Link,
}

/// A set of attributes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attributes(u8);

impl Attributes {
    /// Of one bit for each, in the order of `Attribute`.
    pub fn of_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// The same as bits.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// One more, if it differs.
    pub fn add_if(&mut self, attribute: Attribute, differs: bool) {
        self.0 |= u8::from(differs) << attribute as u8;
    }

    /// Whether it is one of them.
    pub fn has(self, attribute: Attribute) -> bool {
        self.0 >> attribute as u8 & 1 != 0
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}
