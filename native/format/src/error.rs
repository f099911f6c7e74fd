//! Why there is no value: a rule of the format that was broken, and where.

use std::borrow::Cow;
use std::fmt;
use std::panic::Location;

/// What a parser gives beside a value.
#[derive(Debug)]
pub enum Error {
    /// The bytes break a rule.
    Malformed {
        /// The rule, in words that a person reads.
        rule: Cow<'static, str>,
        /// The object, line or path, seen from outside; may be empty.
        place: String,
    },
    /// Two pieces of a manifest would have one key: which of them gets it, only all of the manifest
    /// shows.  `amend` reads that then, and gives this to nobody.
    SameKey,
    /// The caller said that the call has to end.
    Stopped,
    /// A branch that no input reaches was reached.
    Bug {
        /// The rule that was broken.
        what: &'static str,
        /// In which line of the engine.
        line: &'static Location<'static>,
    },
    /// What the caller lent failed, a source of bytes or of objects: its own error, unchanged.
    Lent(Box<dyn std::error::Error + Send + Sync>),
}

/// What a parser gives.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A rule that was broken; `within` says where.
    pub fn new(rule: impl Into<Cow<'static, str>>) -> Self {
        Self::Malformed {
            rule: rule.into(),
            place: String::new(),
        }
    }

    /// The error of a branch that no input reaches.
    #[track_caller]
    pub fn bug(what: &'static str) -> Self {
        let line = Location::caller();
        Self::Bug { what, line }
    }

    /// The same error, seen from further out.
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
            Self::SameKey => to.write_str("two pieces would have one key"),
            Self::Stopped => to.write_str("stopped"),
            Self::Bug { what, line } => write!(to, "a bug of the engine: {what} ({line})"),
            Self::Lent(error) => error.fmt(to),
        }
    }
}

impl std::error::Error for Error {}
