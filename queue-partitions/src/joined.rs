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
/// The first error. If another part was changed, or may have been, the error says that
/// the call may have happened. All such calls can be repeated.
pub(crate) fn of_writes<T>(
    answers: Vec<Result<T, Error>>,
    has_changed: impl Fn(&T) -> bool,
) -> Result<Vec<T>, Error> {
    let may_have_happened = answers.iter().any(|answer| match answer {
        Ok(answer) => has_changed(answer),
        Err(error) => error.effect() != Effect::No,
    });
    let joined: Result<Vec<T>, Error> = answers.into_iter().collect();
    joined.map_err(|error| whole(error, may_have_happened))
}

/// Turns the error of one part into the error of the call. `may_have_happened` says
/// whether the call changed another part, or may have.
pub(crate) fn whole(error: Error, may_have_happened: bool) -> Error {
    if !may_have_happened || error.effect() != Effect::No {
        return error;
    }
    Error::Interrupted { at: error.at(), source: Box::new(error) }
}

#[cfg(test)]
mod tests {
    use relq_core::error::{ErrorContext, Operation, RetryAdvice};

    use super::*;

    fn refused() -> Error {
        let at = ErrorContext { backend: "mine", operation: Operation::Settle };
        Error::Full { at, source: "no memory".into() }
    }

    #[test]
    fn a_call_that_one_part_applied_may_have_happened() {
        let error = of_writes(vec![Ok(1), Err(refused())], |_| true).unwrap_err();

        assert_eq!(error.effect(), Effect::Maybe);
        assert_eq!(error.retry_advice(), RetryAdvice::Safe);
        assert!(error.full_message().ends_with("the store is full: no memory"));
    }

    #[test]
    fn a_call_that_changed_no_part_did_not_happen() {
        for answers in
            [vec![Err(refused()), Err(refused())], vec![Ok(0), Err(refused())]]
        {
            let error = of_writes(answers, |jobs| *jobs > 0).unwrap_err();

            assert_eq!(error.effect(), Effect::No);
        }
        assert_eq!(
            of_reads(vec![Ok(1), Err(refused())]).unwrap_err().effect(),
            Effect::No
        );
    }
}
