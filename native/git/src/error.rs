//! The errors of parsers: a broken rule of the format, and its place.

use std::borrow::Cow;
use std::fmt;
use std::panic::Location;

/// An error of a parser.
#[derive(Debug)]
pub enum Error {
    /// The bytes break a rule.
    Malformed {
        /// The rule, for people.
        rule: Cow<'static, str>,
        /// The object, line or path; may be empty.
        place: String,
    },
    /// An object that is named, directly or not, is missing.
    Missing {
        /// The missing object, for people.
        reason: &'static str,
        /// The id of the object, or the place that names it.
        place: String,
    },
    /// Two pieces of a manifest would have one key, and only the whole manifest shows which piece
    /// gets it.  `amend` then reads all of it, and never returns this.
    SameKey,
    /// The caller stopped the call.
    Stopped,
    /// A branch that no input reaches was reached.
    Bug {
        /// The rule that was broken.
        what: &'static str,
        /// The source line of the engine.
        line: &'static Location<'static>,
    },
    /// An error of a source of bytes or objects that the caller lent, unchanged.
    Lent(Box<dyn std::error::Error + Send + Sync>),
}

/// The result of a parser.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Make an error for a broken rule; `within` adds the place.
    pub fn new(rule: impl Into<Cow<'static, str>>) -> Self {
        Self::Malformed {
            rule: rule.into(),
            place: String::new(),
        }
    }

    /// Make the error for an object that is missing.
    pub fn missing(reason: &'static str, place: impl fmt::Display) -> Self {
        let place = place.to_string();
        Self::Missing { reason, place }
    }

    /// Make the error of a branch that no input reaches.
    #[track_caller]
    pub fn bug(what: &'static str) -> Self {
        let line = Location::caller();
        Self::Bug { what, line }
    }

    /// Add an outer place to the error of a broken rule; other errors are unchanged.
    #[must_use]
    pub fn within(self, outside: impl fmt::Display) -> Self {
        match self {
            Self::Malformed { rule, place } if place.is_empty() => Self::Malformed {
                rule,
                place: outside.to_string(),
            },
            Self::Malformed { rule, place } => Self::Malformed {
                rule,
                place: format!("{outside}: {place}"),
            },
            other => other,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed { rule, place } if place.is_empty() => to.write_str(rule),
            Self::Malformed { rule, place } => write!(to, "{place}: {rule}"),
            Self::Missing { reason, place } => write!(to, "{place}: {reason}"),
            Self::SameKey => to.write_str("two pieces would have one key"),
            Self::Stopped => to.write_str("stopped"),
            Self::Bug { what, line } => write!(to, "a bug of the engine: {what} ({line})"),
            Self::Lent(error) => error.fmt(to),
        }
    }
}

impl std::error::Error for Error {}
