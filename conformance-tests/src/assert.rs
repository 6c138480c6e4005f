//! `assert_eq!` of the test cases, with a message that needs no second reading.

use std::fmt;

/// Fails unless the values are equal, like the macro of the standard library. The message
/// calls them seen and expected instead of left and right. If the call has no message of
/// its own, the message begins with the expression of the seen value.
macro_rules! assert_eq {
    ($seen:expr, $expected:expr $(,)?) => {
        assert_eq!($seen, $expected, "`{}` is not as expected", stringify!($seen))
    };
    ($seen:expr, $expected:expr, $($message:tt)+) => {
        match (&$seen, &$expected) {
            (seen, expected) => {
                if *seen != *expected {
                    $crate::assert::differ(format_args!($($message)+), &seen, &expected)
                }
            }
        }
    };
}

/// # Panics
/// Always, with the message and both values.
#[track_caller]
#[cold]
pub(crate) fn differ(
    message: fmt::Arguments<'_>,
    seen: &dyn fmt::Debug,
    expected: &dyn fmt::Debug,
) -> ! {
    panic!("{message}\nseen: {seen:?}\nexpected: {expected:?}")
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    /// Returns the message with which the closure panics.
    fn message(fails: fn()) -> String {
        let panicked = catch_unwind(fails).unwrap_err();
        *panicked.downcast().unwrap()
    }

    #[test]
    fn a_failure_says_what_was_expected_and_what_was_seen() {
        let plain = message(|| assert_eq!([1, 2].len(), 3));
        let with_words = message(|| assert_eq!("b", "a", "R{}: the payload", 1));

        std::assert_eq!(
            plain,
            "`[1, 2].len()` is not as expected\nseen: 2\nexpected: 3"
        );
        std::assert_eq!(with_words, "R1: the payload\nseen: \"b\"\nexpected: \"a\"");
    }
}
