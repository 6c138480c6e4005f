//! Whether a POST comes from a page of this host.
//!
//! Browsers say so themselves: `Sec-Fetch-Site` on secure addresses and on loopback, and
//! `Origin` on every POST. A page of another site cannot set or drop either. Programs that
//! are no browser send neither; they are served only if they sign in by a header, which no
//! browser adds by itself to the request of a foreign page. (A browser does add
//! `Authorization: Basic` after it has asked for it, but then it sends an `Origin`, too.)

use axum::http::{HeaderMap, header::ORIGIN};

/// Why a POST is refused; `None` if it is not. `authority` is the host and port that the
/// request names.
pub(crate) fn refusal(
    headers: &HeaderMap,
    authority: &str,
    has_header_sign_in: bool,
) -> Option<&'static str> {
    const FOREIGN: &str = "the form was sent by another site";
    if let Some(site) = headers.get("sec-fetch-site") {
        return (site != "same-origin").then_some(FOREIGN);
    }
    if let Some(origin) = headers.get(ORIGIN) {
        let host = origin.to_str().ok().and_then(|it| it.split_once("://"));
        let is_same =
            host.is_some_and(|(_, host)| host.eq_ignore_ascii_case(authority));
        return (!is_same).then_some(FOREIGN);
    }
    (!has_header_sign_in).then_some(
        "the request does not say which page sent it: sign in with the header \
         Authorization, or send the header Origin",
    )
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn is_refused(sent: &[(&'static str, &'static str)], signed_in: bool) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in sent {
            headers.insert(*name, HeaderValue::from_static(value));
        }
        refusal(&headers, "localhost:80", signed_in).is_some()
    }

    #[test]
    fn only_pages_of_this_host_may_post() {
        for (sent, refused) in [
            (&[("sec-fetch-site", "same-origin")][..], false),
            (&[("sec-fetch-site", "same-site")], true),
            (
                &[("sec-fetch-site", "cross-site"), ("origin", "http://localhost:80")],
                true,
            ),
            (&[("sec-fetch-site", "none")], true),
            (&[("origin", "http://localhost:80")], false),
            (&[("origin", "http://localhost:81")], true),
            (&[("origin", "null")], true),
        ] {
            assert_eq!(is_refused(sent, true), refused, "{sent:?}");
            assert_eq!(is_refused(sent, false), refused, "{sent:?}");
        }
    }

    #[test]
    fn a_program_signs_in_by_a_header() {
        assert!(is_refused(&[], false));
        assert!(!is_refused(&[], true));
    }
}
