//! Why a command has no reply.

use std::io;

use redis::RedisError;
use relq_core::{Error, error::ErrorContext};

use crate::error;

/// Why a command has no reply: it was not sent, or its reply was lost.
#[derive(Debug, Clone)]
pub(crate) enum Failed {
    /// The command was not sent, because connecting failed.
    BeforeSend(RedisError),
    AfterSend(RedisError),
    /// The command took effect, but it is not known whether enough replicas have it.
    /// The text says why.
    Unconfirmed(String),
}

impl Failed {
    /// Returns the failure of a command whose sending task ended before a reply
    /// arrived: the command may have run.
    pub(crate) fn unheard() -> Self {
        let lost = io::Error::other("the task that sent the command ended");
        Self::AfterSend(lost.into())
    }

    /// The error of the client library; `None` if the command took effect.
    pub(super) fn error(&self) -> Option<&RedisError> {
        match self {
            Self::BeforeSend(error) | Self::AfterSend(error) => Some(error),
            Self::Unconfirmed(_) => None,
        }
    }

    /// Converts this failure to the error that the caller gets.
    pub(crate) fn at(self, at: ErrorContext) -> Error {
        match self {
            Self::BeforeSend(error) => error::before_send(at, error),
            Self::AfterSend(error) => error::after_send(at, error),
            Self::Unconfirmed(why) => Error::NotReplicated { at, source: why.into() },
        }
    }
}

#[cfg(test)]
mod tests {
    use relq_core::error::{Effect, Operation, RetryAdvice};

    use super::*;

    /// R4: a push whose sending task ended may have been stored, so its caller must not
    /// believe that it was not.
    #[test]
    fn a_command_whose_task_ended_may_have_run() {
        let at = ErrorContext { backend: "mine", operation: Operation::Push };

        let error = Failed::unheard().at(at);

        assert_eq!(error.effect(), Effect::Maybe);
        assert_eq!(error.retry_advice(), RetryAdvice::MayRepeat);
    }
}
