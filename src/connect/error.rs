//! The error type for a queue that could not be opened.

/// Why [`connect`](crate::connect()) returned no queue. No message shows a password.
///
/// ```
/// use relq::{ConnectError, QueueName};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let emails = QueueName::new("emails")?;
/// match relq::connect("rediss+zset://localhost", &emails).await {
///     Ok(queue) => println!("{queue} is open"),
///     Err(ConnectError::Queue(error)) if !error.needs_help() => {
///         println!("the store may be starting, so try again: {error}");
///     }
///     Err(error) => println!("correct the URL or the store: {error}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// No backend has this scheme, or the URL has no scheme.
    #[error("{}", unknown_scheme(url, scheme.as_deref(), guess.as_deref()))]
    UnknownScheme {
        /// The URL, without user, password and options.
        url: String,
        /// The text before the URL's first colon.
        scheme: Option<String>,
        /// The scheme or URL that the user probably meant.
        guess: Option<String>,
    },
    /// The backend exists but was not compiled into this build.
    #[error(
        "the scheme {scheme:?} needs the feature {feature:?}, which was not compiled \
         in: build with `--features {feature}`"
    )]
    NotCompiledIn {
        /// The URL's scheme.
        scheme: String,
        /// The feature that enables the backend.
        feature: &'static str,
    },
    /// The scheme is known, but the rest of the URL cannot be used.
    #[error("the URL {url} is not usable: {reason}")]
    BadUrl {
        /// The URL, without user, password and options.
        url: String,
        /// Why the URL cannot be used.
        reason: String,
    },
    /// The backend could not open the queue.
    #[error(transparent)]
    Queue(#[from] relq_core::Error),
}

fn unknown_scheme(url: &str, scheme: Option<&str>, guess: Option<&str>) -> String {
    let mut message = match scheme {
        Some(scheme) => format!("no backend is called {scheme:?}, as in {url}"),
        None => format!("{url:?} is not a URL"),
    };
    if let Some(guess) = guess {
        message.push_str(&format!("; did you mean {guess}?"));
    }
    message.push_str(" (known: ");
    message.push_str(&super::known_schemes().join(", "));
    message.push(')');
    message
}
