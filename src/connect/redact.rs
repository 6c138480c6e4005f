//! Removes the secrets from a URL, so that it can be shown.

/// Returns a URL that can be shown: without user, password and options.
///
/// Everything up to the last `@` is removed, because a password that was not
/// percent-encoded may contain any other delimiter. The options are removed too,
/// because the URL of a Unix socket has its password there. If the last `@` may stand in
/// the password of an option, only the scheme is shown.
pub(super) fn redacted(url: &str) -> String {
    let (scheme, rest) = url.split_at(scheme_of(url).map_or(0, |it| it.len() + 1));
    let (slashes, rest) = match rest.strip_prefix("//") {
        Some(rest) => ("//", rest),
        None => ("", rest),
    };
    let (secret, rest) = match rest.rsplit_once('@') {
        Some((before, _)) if may_end_in_an_option(before) => ("***", ""),
        Some((_, rest)) => ("***@", rest),
        None => ("", rest),
    };
    let (rest, options) = match rest.split_once('?') {
        Some((rest, _)) => (rest, "?***"),
        None => (rest, ""),
    };
    format!("{scheme}{slashes}{secret}{rest}{options}")
}

/// Returns the scheme of a URL: the text before the first `:`, if it has only letters that a
/// scheme may have. Any other text may be a part of a password.
pub(super) fn scheme_of(url: &str) -> Option<&str> {
    let is_of_a_scheme =
        |letter: char| letter.is_ascii_alphanumeric() || "+-._".contains(letter);
    let (scheme, _) = url.split_once(':')?;
    scheme.chars().all(is_of_a_scheme).then_some(scheme)
}

/// Whether the text has a `?` with an option behind it. A password before the host may look
/// the same, so nobody can tell which part of such a URL is secret.
fn may_end_in_an_option(text: &str) -> bool {
    text.split_once('?').is_some_and(|(_, options)| options.contains('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_taken_out_wherever_they_stand() {
        for (url, shown) in [
            ("redis://:s3cret@host/0", "redis://***@host/0"),
            ("redis://me:p@ss/w?rd@host:1/0", "redis://***@host:1/0"),
            ("redi://me:pass@host", "redi://***@host"),
            ("redis:me:pass@host", "redis:***@host"),
            ("unix:///run/r.sock?pass=s3cret", "unix:///run/r.sock?***"),
            ("sqlite:a.db?synchronous=off", "sqlite:a.db?***"),
            ("me:pass@host", "me:***@host"),
            ("s3cret@host:6379", "***@host:6379"),
            ("/run/r.sock?pass=s3:cret", "/run/r.sock?***"),
            ("unix:///s?pass=top@s3cret", "unix://***"),
            ("unix:///s?db=1&pass=top@s3cret&x=1", "unix://***"),
            (
                "redis-sentinel://u:p@h/svc?sentinel_password=a@s3cret",
                "redis-sentinel://***",
            ),
            ("relq.db", "relq.db"),
        ] {
            assert_eq!(redacted(url), shown);
        }
    }
}
