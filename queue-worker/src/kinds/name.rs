//! The rules for the name of a kind, checked when the application is compiled.

/// The largest length of the name of a kind, in bytes. A unique key is at most 255 bytes
/// long and begins with the name of the kind, so this leaves half of it to the job.
pub const MAX_KIND_BYTES: usize = 128;

/// Fails the compilation, when it is called in a constant, if `kind` is no valid name.
pub(super) const fn assert_valid(kind: &str) {
    assert!(!kind.is_empty(), "the KIND of a job must not be empty");
    assert!(kind.len() <= MAX_KIND_BYTES, "the KIND of a job is longer than 128 bytes");
    assert!(
        !has_control_characters(kind.as_bytes()),
        "the KIND of a job must not hold control characters"
    );
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
        assert_valid(&"é".repeat(MAX_KIND_BYTES / 2));
    }

    #[test]
    #[should_panic(expected = "longer than 128 bytes")]
    fn a_longer_name_is_refused() {
        assert_valid(&"x".repeat(MAX_KIND_BYTES + 1));
    }

    #[test]
    #[should_panic(expected = "must not be empty")]
    fn an_empty_name_is_refused() {
        assert_valid("");
    }

    #[test]
    #[should_panic(expected = "control characters")]
    fn a_name_of_two_lines_is_refused() {
        assert_valid("send\nemail");
    }
}
