//! Indents JSON without a change of its values.

/// The white space between the tokens of JSON.
const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

/// Valid JSON with one member or element a line. Only the white space between the tokens
/// changes. A parsed value would sort the members, drop all but one of the same name, and
/// round large numbers.
pub(crate) fn indented(json: &str) -> String {
    let mut shown = String::with_capacity(2 * json.len());
    let (mut depth, mut last) = (0_usize, "");
    let mut rest = json.trim_start_matches(BLANKS);
    while !rest.is_empty() {
        let (token, after) = rest.split_at(token_length(rest));
        let (follows_open, closes) = (is_open(last), matches!(token, "}" | "]"));
        if closes {
            depth = depth.saturating_sub(1);
        }
        if last == "," || follows_open != closes {
            shown.push('\n');
            shown.push_str(&"  ".repeat(depth));
        }
        shown.push_str(token);
        if token == ":" {
            shown.push(' ');
        }
        depth += usize::from(is_open(token));
        (last, rest) = (token, after.trim_start_matches(BLANKS));
    }
    shown
}

fn is_open(token: &str) -> bool {
    matches!(token, "{" | "[")
}

/// The length of the token with which the text begins.
fn token_length(text: &str) -> usize {
    let ends = |c: char| BLANKS.contains(&c) || "{}[],:\"".contains(c);
    match text.as_bytes()[0] {
        b'"' => string_length(text),
        b'{' | b'}' | b'[' | b']' | b',' | b':' => 1,
        _ => text.find(ends).unwrap_or(text.len()),
    }
}

/// The length of the string with which the text begins, with its quotes.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn values_stay_as_they_are_written() {
        let json = r#" {"id":123456789012345678901,"b":1.50,"a":[],"a":{ }}"#;

        let lines: Vec<_> = indented(json).lines().map(str::to_owned).collect();

        let expected = [
            "{",
            r#"  "id": 123456789012345678901,"#,
            r#"  "b": 1.50,"#,
            r#"  "a": [],"#,
            r#"  "a": {}"#,
            "}",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn the_form_is_that_of_pretty_json() {
        for json in [
            "{}",
            "[ ]",
            r#"{"a":[1,-2e5,[true,null],{"b":{}}],"c":"é"}"#,
            r#"{"{\"":"},[:\\","~":"\\\""}"#,
        ] {
            let value: Value = serde_json::from_str(json).unwrap();
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            // A float has one form of several, and the form of the text is kept.
            assert_eq!(indented(json), pretty.replace("-200000.0", "-2e5"), "{json}");
        }
    }
}
