//! What may have to change in a tree, and what has to be done about it.
//!
//! Pure, but for `survey` and `unhashed`, which read the tree.

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
pub use table::{Candidates, Here, Kind, Mode, Row, Seen, Span, Stated};
