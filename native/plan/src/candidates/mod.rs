//! The paths of a tree that may have to change, and the plan for them.

mod changes;
mod content;
mod differing;
mod planner;
mod renames;
mod state;
mod table;

pub use changes::Changes;
pub use differing::{Attribute, AttributeSet};
pub use planner::{Number, Operations, Planned, parents};
pub use renames::Renames;
pub use table::{
    Candidates, EntryKind, LocalState, LocalStatus, Row, Span, Stated, StatedMode, TableFull,
};
