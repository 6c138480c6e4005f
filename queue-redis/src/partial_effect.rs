//! The effect of a call that sends several commands, of which some may succeed and
//! others fail (R21).

use relq_core::{Error, error::Effect};

/// Whether earlier commands of a call have changed the store. The error of a later
/// command must then report that the call may have happened.
///
/// ```
/// # use relq_core::{Error, error::{Effect, ErrorContext, Operation}};
/// use relq_redis::PartialEffect;
///
/// # let at = ErrorContext { backend: "mine", operation: Operation::Settle };
/// let refused = || Error::Full { at, source: "no memory".into() };
/// let partial = PartialEffect::of(&[Ok("done"), Err(refused())]);
///
/// assert_eq!(refused().effect(), Effect::No);
/// assert_eq!(partial.whole(refused()).effect(), Effect::Maybe);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PartialEffect {
    /// No command has changed the store so far.
    #[default]
    Undone,
    /// A command has changed the store, or may have.
    Begun,
}

impl PartialEffect {
    /// The effect of commands with these results, each of which changes the store if it
    /// succeeds.
    pub fn of<T>(answers: &[Result<T, Error>]) -> Self {
        let mut partial = Self::default();
        answers.iter().for_each(|answer| partial.add(answer));
        partial
    }

    /// Adds the result of a command that changes the store if it succeeds.
    pub fn add<T>(&mut self, answer: &Result<T, Error>) {
        let is_undone = |error: &Error| error.effect() == Effect::No;
        if !answer.as_ref().is_err_and(is_undone) {
            *self = Self::Begun;
        }
    }

    /// Adds the result of the next command and returns it. An error becomes an error of
    /// the whole call, which ends with it.
    ///
    /// # Errors
    /// The command's error. [`Error::Interrupted`] if an earlier command was done, or if
    /// this one was done and its reply, which says whether the call needs more commands,
    /// cannot be read.
    pub fn then<T>(&mut self, answer: Result<T, Error>) -> Result<T, Error> {
        self.add(&answer);
        answer.map_err(|error| self.whole(error))
    }

    /// Turns the error of one command into an error of the whole call. If a command
    /// changed the store, the result says that the call may have happened, because it
    /// has happened at least in part, and perhaps not as a whole. It still says whether
    /// a person has to repair the cause.
    pub fn whole(self, error: Error) -> Error {
        if self == Self::Undone || error.effect() == Effect::Maybe {
            return error;
        }
        Error::Interrupted { at: error.at(), source: Box::new(error) }
    }
}

#[cfg(test)]
mod tests {
    use relq_core::error::{ErrorContext, Operation, RetryAdvice};

    use super::*;

    const AT: ErrorContext =
        ErrorContext { backend: "mine", operation: Operation::Redrive };

    fn refused() -> Error {
        Error::Full { at: AT, source: "no memory".into() }
    }

    fn lost() -> Error {
        Error::Interrupted { at: AT, source: "no answer".into() }
    }

    #[test]
    fn a_call_of_refused_commands_did_not_happen() {
        let partial = PartialEffect::of::<()>(&[Err(refused()), Err(refused())]);

        assert!(matches!(partial.whole(refused()), Error::Full { .. }));
    }

    #[test]
    fn one_command_that_was_done_or_lost_makes_the_call_doubtful() {
        for begun in [Ok(()), Err(lost())] {
            let partial = PartialEffect::of(&[begun, Err(refused())]);

            let whole = partial.whole(refused());

            assert_eq!(whole.effect(), Effect::Maybe);
            assert_eq!(whole.retry_advice(), RetryAdvice::Safe);
            assert_eq!(whole.at(), AT);
        }
    }

    #[test]
    fn the_effect_includes_that_of_earlier_commands() {
        let mut partial = PartialEffect::default();

        let first = partial.then::<()>(Err(refused())).unwrap_err();
        partial.then(Ok(())).unwrap();
        let third = partial.then::<()>(Err(refused())).unwrap_err();

        assert_eq!(first.effect(), Effect::No);
        assert_eq!(third.effect(), Effect::Maybe);
    }

    /// The reply would have said whether the call needs more commands.
    #[test]
    fn a_call_that_ends_at_an_unreadable_reply_is_doubtful() {
        let unreadable = Error::Unreadable { at: AT, source: "not a number".into() };
        assert_eq!(unreadable.effect(), Effect::Yes);

        let whole = PartialEffect::default().then::<()>(Err(unreadable)).unwrap_err();

        assert_eq!(whole.effect(), Effect::Maybe);
    }

    /// Each repetition of such a call fails, so a worker must be able to end with it.
    #[test]
    fn a_part_that_needs_help_makes_the_call_need_it() {
        let unusable = Error::Unusable { at: AT, source: "wrong type".into() };

        assert!(PartialEffect::Begun.whole(unusable).needs_help());
        assert!(!PartialEffect::Begun.whole(refused()).needs_help());
    }

    #[test]
    fn the_cause_is_kept() {
        let message = PartialEffect::Begun.whole(refused()).full_message();

        assert!(message.ends_with("the store is full: no memory"), "{message}");
    }
}
