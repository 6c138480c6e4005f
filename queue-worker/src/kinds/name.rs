//! The rules for the names that a kind sets, checked when the application is compiled.

use relq_core::QueueName;

use crate::{Job, MAX_KIND_BYTES};

/// Fails the compilation, when it is called in a constant, if a name of the kind `T` is
/// not valid.
pub(super) const fn assert_valid<T: Job>() {
    assert_valid_kind(T::KIND);
    if let Some(queue) = T::QUEUE {
        assert_valid_queue(queue);
    }
}

const fn assert_valid_kind(kind: &str) {
    assert!(!kind.is_empty(), "the KIND of a job must not be empty");
    assert!(kind.len() <= MAX_KIND_BYTES, "the KIND of a job is longer than 128 bytes");
    assert!(
        !has_control_characters(kind.as_bytes()),
        "the KIND of a job must not hold control characters"
    );
}

/// The rules are those of [`QueueName::new`], which cannot be called in a constant.
const fn assert_valid_queue(queue: &str) {
    assert!(!queue.is_empty(), "the QUEUE of a job must not be empty");
    assert!(
        queue.len() <= QueueName::MAX_BYTES,
        "the QUEUE of a job is longer than 200 bytes"
    );
    assert!(
        !has_control_characters(queue.as_bytes()),
        "the QUEUE of a job must not hold control characters"
    );
    assert!(!has_braces(queue.as_bytes()), "the QUEUE of a job must not hold braces");
}

/// `str::chars` cannot be called in a constant. In UTF-8 the control characters are the
/// bytes below 0x20, the byte 0x7f, and 0xc2 followed by a byte below 0xa0.
const fn has_control_characters(text: &[u8]) -> bool {
    match text {
        [0xc2, second, ..] if *second < 0xa0 => true,
        [first, ..] if *first < 0x20 || *first == 0x7f => true,
        [_, rest @ ..] => has_control_characters(rest),
        [] => false,
    }
}

const fn has_braces(text: &[u8]) -> bool {
    match text {
        [b'{' | b'}', ..] => true,
        [_, rest @ ..] => has_braces(rest),
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_found_as_the_standard_library_finds_them() {
        for character in (0..0x3000).filter_map(char::from_u32) {
            let text = format!("a{character}b");
            let is_found = has_control_characters(text.as_bytes());
            assert_eq!(is_found, character.is_control(), "{character:?}");
        }
    }

    #[test]
    fn a_name_of_the_largest_length_is_valid() {
        assert_valid_kind(&"é".repeat(MAX_KIND_BYTES / 2));
    }

    #[test]
    #[should_panic(expected = "longer than 128 bytes")]
    fn a_longer_name_is_refused() {
        assert_valid_kind(&"x".repeat(MAX_KIND_BYTES + 1));
    }

    #[test]
    #[should_panic(expected = "must not be empty")]
    fn an_empty_name_is_refused() {
        assert_valid_kind("");
    }

    #[test]
    #[should_panic(expected = "control characters")]
    fn a_name_of_two_lines_is_refused() {
        assert_valid_kind("send\nemail");
    }

    /// The text of the failed check, or `None` if `queue` is valid.
    fn failure(queue: &str) -> Option<String> {
        let panic = std::panic::catch_unwind(|| assert_valid_queue(queue)).err()?;
        Some((*panic.downcast_ref::<&str>().expect("a fixed text")).to_owned())
    }

    #[test]
    fn queues_are_refused_for_the_reasons_of_their_type() {
        let longest = "é".repeat(QueueName::MAX_BYTES / 2);
        let too_long = format!("{longest}x");
        let texts = [
            "mail", "e mail", "é", &longest, "", &too_long, "a\nb", "a\u{85}b",
            "{mail", "mail}", "a{b}c",
        ];
        for text in texts {
            let reason = QueueName::new(text).err().map(|error| error.to_string());
            let found = failure(text).map(|found| {
                let found = found.replace("QUEUE of a job", "queue name");
                found.replace("longer than 200 bytes", "too long")
            });
            assert_eq!(found, reason, "{text:?}");
        }
    }
}
