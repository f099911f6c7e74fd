//! Sets of attributes in which a local entry may differ from the wanted one.

/// The attributes in which entries may differ: one bit each, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Attribute {
    /// The type.
    Type,
    /// The size of a file.
    Size,
    /// The time of the last change.
    Mtime,
    /// The permission bits.
    Mode,
    /// The user.
    Owner,
    /// The group.
    Group,
    /// The target of a symlink.
    Target,
    /// The inode that it should share with another name.
    Link,
}

/// A set of attributes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AttributeSet(u8);

impl AttributeSet {
    /// Return the bits.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Add an attribute if it differs.
    pub fn add_if(&mut self, attribute: Attribute, differs: bool) {
        self.0 |= u8::from(differs) << attribute as u8;
    }

    /// Return true if an attribute is in the set.
    pub fn has(self, attribute: Attribute) -> bool {
        self.0 >> attribute as u8 & 1 != 0
    }

    /// Return true if the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}
