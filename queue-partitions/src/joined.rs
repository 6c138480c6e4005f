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

/// The errors of the parts of one call, of which one error is made.
#[derive(Debug, Default)]
pub(crate) struct PartErrors {
    error: Option<Error>,
    may_have_happened: bool,
}

impl PartErrors {
    /// Notes that the call changed a part.
    pub(crate) fn note_change(&mut self) {
        self.may_have_happened = true;
    }

    /// Adds the error of a part. The first stays.
    pub(crate) fn add(&mut self, error: Error) {
        self.note(&error);
        self.error.get_or_insert(error);
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
    /// that the call did not happen only if no part was changed.
    pub(crate) fn end(mut self) -> Option<Error> {
        self.error.take().map(|error| self.ended_by(error))
    }

    /// The error of a call that ends with the error of a part.
    pub(crate) fn ended_by(&self, error: Error) -> Error {
        if !self.may_have_happened || error.effect() != Effect::No {
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
}
