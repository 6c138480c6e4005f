//! Text of jobs and times, made safe to show. maud escapes HTML; this module escapes what
//! the eye cannot tell.

use std::time::{Duration, SystemTime};

use relq_core::environment::{Clock as _, SystemClock, Timestamp};

/// The latest time that is shown as a date, in milliseconds since 1970: the last second of
/// the year 9999.
const LAST_DATE_MS: i64 = 253_402_300_799_000;

/// Escapes control characters and those that change the direction of the text. Keeps line
/// breaks and tabs.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => shown.push(c),
            c if c.is_control() || is_invisible(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// Whether a character has no glyph, or changes the order in which others are shown. These
/// are the line separators, the marks of annotations, and the characters with the property
/// `Default_Ignorable_Code_Point` of Unicode, some of which are not assigned yet.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Bytes as text: as they are if they are UTF-8, else with escapes for all but ASCII.
pub(crate) fn of_bytes(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => visible(text),
        Err(_) => bytes.escape_ascii().to_string(),
    }
}

/// The first `most` bytes of a payload as text, and whether more follow.
pub(crate) fn beginning(bytes: &[u8], most: usize) -> (String, bool) {
    if bytes.len() <= most {
        return (of_bytes(bytes), false);
    }
    let cut = &bytes[..most];
    let shown = match std::str::from_utf8(cut) {
        // The cut may be within a character.
        Err(error) if error.error_len().is_none() => {
            of_bytes(&cut[..error.valid_up_to()])
        }
        _ => of_bytes(cut),
    };
    (shown, true)
}

/// One line of at most `most` characters.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown: String = visible(&line).chars().take(most + 1).collect();
    if shown.chars().count() > most {
        shown.pop();
        shown.push('…');
    }
    shown
}

/// A time of the store's clock in UTC.
pub(crate) fn time(at: Timestamp) -> String {
    if (0..=LAST_DATE_MS).contains(&at.unix_ms()) {
        humantime::format_rfc3339_seconds(SystemTime::from(at)).to_string()
    } else {
        format!("{} ms", at.unix_ms())
    }
}

/// How far a time is from now, by the clock of this process.
pub(crate) fn distance(at: Timestamp) -> String {
    let now = SystemClock.now();
    if at > now {
        format!("in {}", duration(at.since(now)))
    } else {
        format!("{} ago", duration(now.since(at)))
    }
}

/// A duration in its two largest units.
pub(crate) fn duration(length: Duration) -> String {
    let whole = if length < Duration::from_secs(1) {
        Duration::from_millis(u64::try_from(length.as_millis()).unwrap_or(u64::MAX))
    } else {
        Duration::from_secs(length.as_secs())
    };
    let words = humantime::format_duration(whole).to_string();
    words.split(' ').take(2).collect::<Vec<_>>().join(" ")
}

/// A number with separators between its thousands.
pub(crate) fn number(count: u64) -> String {
    let digits = count.to_string();
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// A number of things, such as `1 job` or `1,000 jobs`.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", number(count), if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_eye_cannot_tell_is_escaped() {
        assert_eq!(visible("a\n\u{202e}b\u{0}é"), "a\n\\u{202e}b\\u{0}é");
        assert_eq!(of_bytes(b"\xff<"), "\\xff<");
        for c in
            "\u{34f}\u{115f}\u{1160}\u{17b4}\u{180e}\u{3164}\u{fe00}\u{fe0f}\u{ffa0}\
                  \u{fff9}\u{fffb}\u{1d173}\u{e0000}\u{e0100}\u{e0fff}"
                .chars()
        {
            assert_eq!(visible(&c.to_string()), c.escape_unicode().to_string());
        }
    }

    #[test]
    fn a_long_payload_is_cut_between_characters() {
        assert_eq!(beginning("aé".as_bytes(), 2), ("a".to_owned(), true));
        assert_eq!(beginning(b"ab", 2), ("ab".to_owned(), false));
        assert_eq!(one_line("a\n  b c", 3), "a b…");
    }

    #[test]
    fn numbers_have_separators() {
        assert_eq!(number(0), "0");
        assert_eq!(number(1_234_567), "1,234,567");
        assert_eq!(counted(1, "job", "jobs"), "1 job");
    }

    #[test]
    fn a_time_is_in_the_future_or_ago() {
        let now = SystemClock.now();
        let hour = Duration::from_secs(3600);
        let later = distance(now.plus(hour));
        assert!(later.starts_with("in 59m ") || later == "in 1h", "{later}");
        let earlier = distance(Timestamp::from_unix_ms(now.unix_ms() - 3_600_000));
        assert!(earlier.starts_with("1h") && earlier.ends_with(" ago"), "{earlier}");
    }

    #[test]
    fn durations_have_two_units() {
        assert_eq!(duration(Duration::from_millis(90_061_500)), "1day 1h");
        assert_eq!(duration(Duration::from_micros(1500)), "1ms");
    }
}
