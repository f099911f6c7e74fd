//! The paths of a tree that may have to change, and the plan for them.
//!
//! Pure, except for `survey` and `unhashed`, which read the tree.

mod changes;
mod content;
mod findings;
mod planner;
mod state;
pub mod survey;
mod table;
pub mod unhashed;

pub use changes::Changes;
pub use findings::TableFindings;
pub use planner::{Number, Operations, Planned, parents};
pub use table::{Candidates, EntryKind, LocalState, LocalStatus, Row, Span, Stated, StatedMode};
