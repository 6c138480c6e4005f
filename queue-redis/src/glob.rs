//! Glob patterns, as `SCAN` and its kin take them.

/// `text` as a glob pattern that matches nothing but it.
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
