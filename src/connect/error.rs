//! Why no queue could be opened.

/// Why [`connect`](crate::connect) gave no queue. No message shows a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// No backend goes by this scheme, or the URL has none.
    #[error("{}", unknown_scheme(url, scheme.as_deref(), guess.as_deref()))]
    UnknownScheme {
        /// The URL, without user, password and options.
        url: String,
        /// What stands before its first colon.
        scheme: Option<String>,
        /// What was perhaps meant.
        guess: Option<String>,
    },
    /// The backend exists and was left out of this build.
    #[error(
        "the scheme {scheme:?} needs the feature {feature:?}, which was not compiled \
         in: build with `--features {feature}`"
    )]
    NotCompiledIn {
        /// The URL's scheme.
        scheme: String,
        /// The feature that brings it.
        feature: &'static str,
    },
    /// The scheme is known and the rest cannot be used.
    #[error("the URL {url} is not usable: {reason}")]
    BadUrl {
        /// The URL, without user, password and options.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The backend was asked and could not open the queue.
    #[error(transparent)]
    Queue(#[from] relq_core::Error),
}

fn unknown_scheme(url: &str, scheme: Option<&str>, guess: Option<&str>) -> String {
    let mut message = match scheme {
        Some(scheme) => format!("no backend is called {scheme:?}, as in {url}"),
        None => format!("{url} is no URL"),
    };
    if let Some(guess) = guess {
        message.push_str(&format!("; did you mean {guess}?"));
    }
    message.push_str(" (known: ");
    message.push_str(&super::known_schemes().join(", "));
    message.push(')');
    message
}
