//! Branches that no input reaches: they fail loudly, and never replace the right value.
//!
//! Rule to keep: an id, length, count or offset that is written comes through these functions,
//! or through `Error::bug` where there is a `Result`.

use std::fmt::Debug;

/// Convert a number to another type, which must hold it.
///
/// # Panics
/// If it does not fit, which is a bug of the caller.
#[track_caller]
#[expect(clippy::panic, reason = "a panic is a bug")]
pub fn fit<T: Copy + Debug, U: TryFrom<T>>(number: T) -> U {
    let Ok(fitting) = U::try_from(number) else {
        let name = std::any::type_name::<U>();
        panic!("{number:?} does not fit into {name}");
    };
    fitting
}

#[cfg(test)]
mod tests {
    use super::fit;
    use crate::error::Error;

    #[test]
    fn a_number_that_fits_is_the_same() {
        assert_eq!(fit::<_, u32>(7_usize), 7);
        assert_eq!(fit::<_, u32>(u64::from(u32::MAX)), u32::MAX);
    }

    #[test]
    #[should_panic(expected = "4294967296 does not fit into u32")]
    fn a_number_that_does_not_fit_is_a_panic() {
        fit::<_, u32>(1_u64 << 32);
    }

    #[test]
    fn an_error_names_its_place() {
        let error = Error::bug("a record that is not there").to_string();
        assert!(error.contains("bug.rs"), "{error}");
        assert!(error.contains("a record that is not there"), "{error}");
    }
}
