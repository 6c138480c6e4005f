//! Calls the store for one id after another, and keeps what was done before a failure.

use std::fmt::Display;

use crate::failure::{CommandResult, Failure};

/// Makes the call for each id, until one fails. Returns the answers so far, which the
/// caller prints in any case, because those calls are done; and the failure, which names
/// its id.
pub(crate) async fn call_for_each<'a, Id, Answer, Error>(
    ids: &'a [Id],
    mut call: impl AsyncFnMut(&'a Id) -> Result<Answer, Error>,
) -> (Vec<Answer>, CommandResult)
where
    Id: Display,
    Error: Into<Failure>,
{
    let mut answers = Vec::with_capacity(ids.len());
    for id in ids {
        match call(id).await {
            Ok(answer) => answers.push(answer),
            Err(error) => {
                let which = format!("this is the answer for {id}");
                return (answers, Err(error.into().after(&which)));
            }
        }
    }
    (answers, Ok(()))
}
