//! Glob patterns for `SCAN`, `HSCAN`, `SSCAN` and `ZSCAN`.

/// A glob pattern that matches only `text`.
///
/// ```
/// assert_eq!(relq_redis::escape_glob("a*b-[c]"), r"a\*b\-\[c\]");
/// ```
pub fn escape_glob(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for symbol in text.chars() {
        if r"*?[]^\-".contains(symbol) {
            escaped.push('\\');
        }
        escaped.push(symbol);
    }
    escaped
}
