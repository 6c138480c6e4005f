//! Joins the results of several parts into the result of one call (R21).

use relq_core::{Error, error::Effect};

/// Joins the results of calls that only read.
///
/// # Errors
/// The first error.
pub(crate) fn of_reads<T>(answers: Vec<Result<T, Error>>) -> Result<Vec<T>, Error> {
    answers.into_iter().collect()
}

/// Joins the results of calls that write. `has_changed` says whether a call with that
/// result has changed its part.
///
/// # Errors
/// That of [`PartErrors::end`]. All such calls can be repeated.
pub(crate) fn of_writes<T>(
    answers: Vec<Result<T, Error>>,
    has_changed: impl Fn(&T) -> bool,
) -> Result<Vec<T>, Error> {
    let (mut all, mut errors) = (Vec::new(), PartErrors::default());
    for answer in answers {
        match answer {
            Ok(answer) => {
                if has_changed(&answer) {
                    errors.note_change();
                }
                all.push(answer);
            }
            Err(error) => errors.add(error),
        }
    }
    errors.end().map_or(Ok(all), Err)
}

/// The answer of the part at which a search through the parts ends. `left` parts are not
/// asked.
///
/// # Errors
/// That of the part. The job or batch may be in one of the parts that are left, so the
/// error never says that the call is done.
pub(crate) fn of_search<T>(answer: Result<T, Error>, left: usize) -> Result<T, Error> {
    match answer {
        Err(error) if left > 0 => Err(PartErrors::default().ended_by(error)),
        answer => answer,
    }
}

/// The errors of the parts of one call, of which one error is made.
#[derive(Debug, Default)]
pub(crate) struct PartErrors {
    error: Option<Error>,
    may_have_happened: bool,
}

/// How far a part got whose call failed. The part that got least far decides the error of
/// the call.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Reached {
    /// It is not known to be done.
    Unknown,
    /// It is done, and a fail-over may lose it.
    Unconfirmed,
    Done,
}

impl Reached {
    fn of(error: &Error) -> Self {
        match error {
            Error::NotReplicated { .. } => Self::Unconfirmed,
            Error::Unreadable { .. } => Self::Done,
            _ => Self::Unknown,
        }
    }
}

impl PartErrors {
    /// Notes that the call changed a part.
    pub(crate) fn note_change(&mut self) {
        self.may_have_happened = true;
    }

    /// Adds the error of a part. Keeps that of the part that got least far, and the first of
    /// several equal ones.
    pub(crate) fn add(&mut self, error: Error) {
        self.note(&error);
        let reached = Reached::of(&error);
        if self.error.as_ref().is_none_or(|known| reached < Reached::of(known)) {
            self.error = Some(error);
        }
    }

    /// Notes the effect of an error that does not count among those of [`Self::end`].
    pub(crate) fn note(&mut self, error: &Error) {
        self.may_have_happened |= error.effect() != Effect::No;
    }

    /// Whether the call changed a part, or may have.
    pub(crate) fn may_have_happened(&self) -> bool {
        self.may_have_happened
    }

    /// The error of the call when all parts were asked; `None` if no part failed. It says
    /// that the call is done only if that holds for each part, and that it did not happen
    /// only if no part was changed.
    pub(crate) fn end(self) -> Option<Error> {
        let may_have_happened = self.may_have_happened;
        self.error.map(|error| match error.effect() {
            Effect::No if may_have_happened => interrupted(error),
            _ => error,
        })
    }

    /// The error of a call that ends with the error of a part, although others were not
    /// asked. It never says that the call is done.
    pub(crate) fn ended_by(&self, error: Error) -> Error {
        let is_undone = error.effect() == Effect::No && !self.may_have_happened;
        if is_undone || matches!(error, Error::Interrupted { .. }) {
            return error;
        }
        interrupted(error)
    }
}

fn interrupted(error: Error) -> Error {
    Error::Interrupted { at: error.at(), source: Box::new(error) }
}

#[cfg(test)]
mod tests {
    use relq_core::error::{ErrorContext, Operation, RetryAdvice};

    use super::*;

    const AT: ErrorContext =
        ErrorContext { backend: "mine", operation: Operation::Settle };

    fn refused() -> Error {
        Error::Full { at: AT, source: "no memory".into() }
    }

    fn unconfirmed() -> Error {
        Error::NotReplicated { at: AT, source: "0 of 1".into() }
    }

    fn unreadable() -> Error {
        Error::Unreadable { at: AT, source: "not a number".into() }
    }

    fn joined<const PARTS: usize>(answers: [Result<u32, Error>; PARTS]) -> Error {
        of_writes(answers.into(), |jobs| *jobs > 0).unwrap_err()
    }

    #[test]
    fn a_call_that_one_part_applied_may_have_happened() {
        let error = joined([Ok(1), Err(refused())]);

        assert_eq!(error.effect(), Effect::Maybe);
        assert_eq!(error.retry_advice(), RetryAdvice::Safe);
        assert!(error.full_message().ends_with("the store is full: no memory"));
    }

    #[test]
    fn a_call_that_changed_no_part_did_not_happen() {
        for answers in [[Err(refused()), Err(refused())], [Ok(0), Err(refused())]] {
            assert_eq!(joined(answers).effect(), Effect::No);
        }
        assert_eq!(
            of_reads(vec![Ok(1), Err(refused())]).unwrap_err().effect(),
            Effect::No
        );
    }

    #[test]
    fn a_call_is_done_only_if_each_part_is() {
        for done in [unconfirmed, unreadable] {
            for answers in
                [[Err(done()), Err(refused())], [Err(refused()), Err(done())]]
            {
                let error = joined(answers);

                assert_eq!(error.effect(), Effect::Maybe);
                let told = error.full_message();
                assert!(told.ends_with("the store is full: no memory"), "{told}");
            }
        }
        assert_eq!(joined([Ok(1), Err(unreadable())]).effect(), Effect::Yes);
        let kept = joined([Err(unconfirmed()), Ok(1)]);
        assert!(matches!(kept, Error::NotReplicated { .. }), "{kept}");
    }

    /// The job or batch may be in a part that the call did not ask.
    #[test]
    fn a_search_is_done_only_if_each_part_was_asked() {
        for done in [unconfirmed, unreadable] {
            let cut = of_search::<()>(Err(done()), 1).unwrap_err();
            let whole = of_search::<()>(Err(done()), 0).unwrap_err();

            assert!(matches!(cut, Error::Interrupted { .. }), "{cut}");
            assert_eq!(whole.effect(), done().effect());
            assert!(!matches!(whole, Error::Interrupted { .. }), "{whole}");
        }
        let undone = of_search::<()>(Err(refused()), 1).unwrap_err();
        assert_eq!(undone.effect(), Effect::No);
        assert_eq!(of_search(Ok(7), 1).unwrap(), 7);
    }

    /// The whole call is not safe from a fail-over if one part is not.
    #[test]
    fn a_part_that_a_fail_over_may_lose_decides() {
        for answers in [
            [Err(unconfirmed()), Err(unreadable())],
            [Err(unreadable()), Err(unconfirmed())],
        ] {
            let error = joined(answers);

            assert!(matches!(error, Error::NotReplicated { .. }), "{error}");
        }
    }
}
