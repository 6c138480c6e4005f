//! Shows untrusted text so that it can neither control a terminal nor be invisible in
//! it.
//!
//! All output for people goes through this module. JSON output does not, because it is
//! exact and has its own escapes.

use icu_properties::{
    CodePointMapData, CodePointSetData,
    props::{DefaultIgnorableCodePoint, GeneralCategory},
};
use unicode_width::UnicodeWidthChar;

/// The most combining marks that are shown on one letter. Languages use up to three.
/// More marks would cover the lines above and below.
const MOST_MARKS: usize = 4;

/// Returns `text` with escapes for the characters that a terminal interprets or does
/// not show. These are control characters, marks of direction, characters without a
/// glyph, and all spaces except the plain and the East Asian one.
pub fn printable(text: &str) -> String {
    beginning(text, usize::MAX)
}

/// Makes a text of several lines printable. Does the same as [`printable`], but keeps
/// the newlines.
pub fn printable_lines(text: &str) -> String {
    text.split('\n').map(printable).collect::<Vec<_>>().join("\n")
}

/// Returns bytes as [`printable`] text. Bytes that are not UTF-8 are escaped one by
/// one. The text ends as soon as it is wider than `columns`.
pub fn payload(bytes: &[u8], columns: usize) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => beginning(text, columns),
        Err(_) => {
            let shown = bytes.len().min(columns.saturating_add(1));
            bytes[..shown].escape_ascii().to_string()
        }
    }
}

/// Returns how many columns of a terminal a printable text needs.
pub fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// Cuts a printable text to at most `columns` columns. A cut text ends with `…`.
pub fn cut(mut text: String, columns: usize) -> String {
    let mut taken = 0;
    let mut fits = 0;
    for (at, c) in text.char_indices() {
        taken += columns_of(c);
        if taken < columns {
            fits = at + c.len_utf8();
        }
        if taken > columns {
            text.truncate(fits);
            text.push('…');
            return text;
        }
    }
    text
}

/// Splits a printable text into lines of at most `columns` columns, of which each has at
/// least one character. An empty text is one empty line.
pub fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut taken = 0;
    for c in text.chars() {
        let wide = columns_of(c);
        if taken > 0 && taken + wide > columns {
            lines.push(String::new());
            taken = 0;
        }
        taken += wide;
        lines.last_mut().expect("there is one").push(c);
    }
    lines
}

fn beginning(text: &str, columns: usize) -> String {
    let mut shown = String::new();
    let mut taken = 0;
    // Escape a combining mark at the start: it would attach to the character that is
    // printed before the text.
    let mut marks = MOST_MARKS;
    for c in text.chars() {
        marks = if is_mark(c) { marks + 1 } else { 0 };
        if is_shown(c) && marks <= MOST_MARKS {
            shown.push(c);
            taken += columns_of(c);
        } else {
            let escape = c.escape_default();
            taken += escape.len();
            shown.extend(escape);
        }
        if taken > columns {
            break;
        }
    }
    shown
}

fn is_shown(c: char) -> bool {
    use GeneralCategory as Category;
    let is_ignorable = CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c);
    match category(c) {
        Category::Control
        | Category::Format
        | Category::LineSeparator
        | Category::ParagraphSeparator
        | Category::PrivateUse
        | Category::Surrogate
        | Category::Unassigned => false,
        Category::SpaceSeparator => matches!(c, ' ' | '\u{3000}'),
        _ => !is_ignorable,
    }
}

fn is_mark(c: char) -> bool {
    use GeneralCategory as Category;
    matches!(category(c), Category::NonspacingMark | Category::EnclosingMark)
}

fn category(c: char) -> GeneralCategory {
    CodePointMapData::<GeneralCategory>::new().get(c)
}

fn columns_of(c: char) -> usize {
    c.width().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_hidden_characters_are_escaped() {
        for (text, shown) in [
            ("a\x1b[2Jb\nc\0\t\r", "a\\u{1b}[2Jb\\nc\\u{0}\\t\\r"),
            ("\u{9b}31m\u{7f}", "\\u{9b}31m\\u{7f}"),
            ("\u{202e}\u{2066}\u{200f}\u{61c}", "\\u{202e}\\u{2066}\\u{200f}\\u{61c}"),
            ("\u{200b}\u{feff}\u{ad}\u{2060}", "\\u{200b}\\u{feff}\\u{ad}\\u{2060}"),
            ("\u{2028}\u{2029}\u{85}", "\\u{2028}\\u{2029}\\u{85}"),
            ("\u{3164}\u{115f}\u{ffa0}", "\\u{3164}\\u{115f}\\u{ffa0}"),
            ("a\u{fe0f}\u{e0100}\u{e0041}", "a\\u{fe0f}\\u{e0100}\\u{e0041}"),
            ("\u{a0}\u{2003}\u{e000}\u{378}", "\\u{a0}\\u{2003}\\u{e000}\\u{378}"),
        ] {
            assert_eq!(printable(text), shown);
        }
    }

    #[test]
    fn text_is_shown_as_it_is() {
        for text in
            ["hellö \\ \"x\" 'y'", "東京　都", "हिन्दी", "e\u{301}", "ไทย", "🎉", ""]
        {
            assert_eq!(printable(text), text);
        }
    }

    #[test]
    fn lines_are_no_wider_than_was_asked_for() {
        assert_eq!(wrapped("", 3), [""]);
        assert_eq!(wrapped("abcdefg", 3), ["abc", "def", "g"]);
        assert_eq!(wrapped("東京都", 5), ["東京", "都"]);
        assert_eq!(wrapped("東京", 1), ["東", "京"], "each line has a character");
    }

    #[test]
    fn marks_cover_no_other_text() {
        assert_eq!(printable("\u{301}a"), "\\u{301}a");
        let pile = format!("a{}", "\u{301}".repeat(6));
        let shown = format!("a{}\\u{{301}}\\u{{301}}", "\u{301}".repeat(4));
        assert_eq!(printable(&pile), shown);
    }

    #[test]
    fn bytes_that_are_no_text_are_escaped() {
        assert_eq!(payload("hellö".as_bytes(), 80), "hellö");
        assert_eq!(payload(b"\xff\x00a", 80), "\\xff\\x00a");
    }

    #[test]
    fn no_more_of_a_payload_is_read_than_is_shown() {
        assert_eq!(payload(b"abcdef", 3), "abcd");
        assert_eq!(payload("漢漢漢".as_bytes(), 3), "漢漢");
        assert_eq!(payload(b"\xffbcdef", 3), "\\xffbcd");
    }

    #[test]
    fn a_cut_text_fits_and_shows_it() {
        let cut = |text: &str, columns| cut(text.to_owned(), columns);
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("äöü", 2), "ä…");
        assert_eq!(cut("漢字漢字", 8), "漢字漢字");
        assert_eq!(cut("漢字漢字", 7), "漢字漢…");
        assert_eq!(cut("漢字漢字", 6), "漢字…");
        assert_eq!(cut("abc", 0), "…");
    }
}
