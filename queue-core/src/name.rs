//! The rules that all names share, such as job ids and worker ids, and the type of a
//! queue's name. A name is checked once, when it is created.

use std::{fmt, str::FromStr, sync::Arc};

/// The error for a name that is not valid: which name, and which rule it breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {reason}")]
pub struct InvalidName {
    what: &'static str,
    reason: &'static str,
}

impl InvalidName {
    pub(crate) fn new(what: &'static str, reason: &'static str) -> Self {
        Self { what, reason }
    }
}

/// Checks the rules that all names share: a name is not empty, has at most `max` bytes,
/// and contains no control characters.
pub(crate) fn check_text(
    what: &'static str,
    text: &str,
    max_bytes: usize,
) -> Result<(), InvalidName> {
    if text.is_empty() {
        return Err(InvalidName::new(what, "must not be empty"));
    }
    if text.len() > max_bytes {
        return Err(InvalidName::new(what, "is too long"));
    }
    if text.chars().any(char::is_control) {
        return Err(InvalidName::new(what, "must not hold control characters"));
    }
    Ok(())
}

macro_rules! checked_text {
    ($(#[$doc:meta])* $name:ident, $what:literal, $max:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The largest length of the name, in bytes.
            pub const MAX_BYTES: usize = $max;

            /// Creates the name from `text` if `text` is valid.
            ///
            /// # Errors
            /// When `text` is empty, longer than [`Self::MAX_BYTES`], or contains a
            /// character that is not allowed.
            pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidName> {
                let text = text.as_ref();
                check_text($what, text, Self::MAX_BYTES)?;
                let check: fn(&str) -> Result<(), InvalidName> = $check;
                check(text)?;
                Ok(Self(text.into()))
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidName;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::new(text)
            }
        }
    };
}
pub(crate) use checked_text;

/// The name of a queue: 1 to 200 bytes of text without control characters or
/// braces.
///
/// Braces are refused because a Redis backend derives its keys as `{name}:…`, and a
/// brace in the name would move a key to another hash slot (R19).
///
/// ```
/// use relq_core::QueueName;
///
/// assert_eq!(QueueName::new("emails")?.as_str(), "emails");
/// assert!(QueueName::new("").is_err());
/// assert!(QueueName::new("a{b}").is_err());
/// # Ok::<(), relq_core::error::InvalidName>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueName(Arc<str>);

impl QueueName {
    /// The largest length of a queue's name, in bytes.
    pub const MAX_BYTES: usize = 200;

    /// Creates the name if `name` is valid.
    ///
    /// # Errors
    /// When the name is empty, longer than [`Self::MAX_BYTES`], or contains braces or
    /// control characters.
    pub fn new(name: impl AsRef<str>) -> Result<Self, InvalidName> {
        let name = name.as_ref();
        check_text("the queue name", name, Self::MAX_BYTES)?;
        if name.contains(['{', '}']) {
            return Err(InvalidName::new("the queue name", "must not hold braces"));
        }
        Ok(Self(name.into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for QueueName {
    type Err = InvalidName;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::new(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        JobId, PushToken, WorkerId, batch::BatchId, schedule::ScheduleName,
        unique::UniqueKey,
    };

    /// A type of name: its word, its longest length in bytes, whether a text is one, and
    /// which characters it may hold.
    type Named = (&'static str, usize, fn(&str) -> bool, fn(char) -> bool);

    fn is_word(character: char, others: &str) -> bool {
        character.is_ascii_alphanumeric() || others.contains(character)
    }

    /// The lengths and the characters are those that the types document.
    const NAMES: [Named; 7] = [
        (
            "a queue",
            200,
            |it| QueueName::new(it).is_ok(),
            |it| !it.is_control() && it != '{' && it != '}',
        ),
        ("a job id", 128, |it| JobId::new(it).is_ok(), |it| !it.is_control()),
        ("a unique key", 255, |it| UniqueKey::new(it).is_ok(), |it| !it.is_control()),
        ("a push token", 64, |it| PushToken::new(it).is_ok(), |it| is_word(it, "-_")),
        ("a worker", 128, |it| WorkerId::new(it).is_ok(), |it| is_word(it, ".:_-")),
        ("a batch", 64, |it| BatchId::new(it).is_ok(), |it| is_word(it, "._-")),
        ("a schedule", 64, |it| ScheduleName::new(it).is_ok(), |it| is_word(it, "._-")),
    ];

    #[test]
    fn a_name_holds_the_documented_characters_and_no_others() {
        let characters = (0..0x250).chain([0x1f600]).filter_map(char::from_u32);
        for character in characters {
            for (what, _, is_valid, allows) in NAMES {
                let found = is_valid(&format!("a{character}b"));
                let expected = allows(character);
                assert_eq!(found, expected, "{character:?} in the name of {what}");
            }
        }
    }

    #[test]
    fn a_name_is_at_most_as_long_as_documented() {
        for (what, longest, is_valid, allows) in NAMES {
            assert!(!is_valid(""), "{what} without a name");
            assert!(is_valid(&"x".repeat(longest)), "{what} of {longest} bytes");
            assert!(!is_valid(&"x".repeat(longest + 1)), "{what} of a byte more");
            let fits = is_valid(&"é".repeat(longest / 2));
            assert_eq!(
                fits,
                allows('é'),
                "{what} of {longest} bytes in characters of 2"
            );
            assert!(!is_valid(&"é".repeat(longest / 2 + 1)), "the bytes of {what}");
        }
    }
}
