//! What may have to change in a tree, and what has to be done about it.
//!
//! Pure, but for the survey, which is elsewhere.

mod changes;
mod content;
mod findings;
mod planner;
mod state;
mod table;

pub use changes::Changes;
pub use findings::TableFindings;
pub use planner::{Number, Operations, Planned, parents};
pub use table::{Candidates, Here, Kind, Mode, Row, Seen, Span, Stated};
