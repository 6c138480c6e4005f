//! Why a request has no page of its own.

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use relq_core::{Error, error::BoxError};

/// A request that failed: the status, and what to tell the visitor. The layer around all
/// routes makes a page of it, because only that knows the base path.
#[derive(Debug, Clone)]
pub(crate) struct PageError {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
}

impl PageError {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, message)
    }

    /// An error of the source of the queues.
    pub(crate) fn source(error: &BoxError) -> Self {
        match error.downcast_ref::<Error>() {
            Some(error) => Self::from(error),
            None => Self::new(StatusCode::BAD_GATEWAY, with_causes(&**error)),
        }
    }
}

/// The text of an error and of its causes.
pub(crate) fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let told = error.to_string();
        if !message.contains(&told) {
            message = format!("{message}: {told}");
        }
        cause = error.source();
    }
    message
}

impl From<&Error> for PageError {
    fn from(error: &Error) -> Self {
        let status = match error {
            Error::Invalid { .. } | Error::Unsupported { .. } => {
                StatusCode::BAD_REQUEST
            }
            Error::Unavailable { .. } | Error::Full { .. } | Error::ReadOnly { .. } => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            _ => StatusCode::BAD_GATEWAY,
        };
        Self::new(status, error.full_message())
    }
}

impl From<Error> for PageError {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.message.clone()).into_response();
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests {
    use relq_core::error::{ErrorContext, Operation};

    use super::*;

    const AT: ErrorContext =
        ErrorContext { backend: "mine", operation: Operation::Peek };

    /// A proxy and a program tell by the status whether to ask again. An error of the source
    /// of the queues is told as one of the queue.
    #[test]
    fn each_error_of_the_store_has_its_status() {
        let source = || BoxError::from("the test says so");
        for (error, status) in [
            (Error::Invalid { at: AT, reason: "it is wrong".to_owned() }, 400),
            (Error::Unsupported { at: AT, option: "an index" }, 400),
            (Error::Unavailable { at: AT, source: source() }, 503),
            (Error::Full { at: AT, source: source() }, 503),
            (Error::ReadOnly { at: AT, source: source() }, 503),
            (Error::Interrupted { at: AT, source: source() }, 502),
            (Error::Denied { at: AT, source: source() }, 502),
            (Error::Unusable { at: AT, source: source() }, 502),
        ] {
            let words = error.full_message();
            let of_queue = PageError::from(&error);
            let of_source = PageError::source(&BoxError::from(error));

            for told in [of_queue, of_source] {
                assert_eq!(told.status.as_u16(), status, "{words}");
                assert_eq!(told.message, words);
            }
        }
    }
}
