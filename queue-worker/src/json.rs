//! Handlers whose payload is decoded from JSON to a type of the application. For
//! several types on one queue, see [`Router`](crate::Router).

use std::{any::type_name, fmt, future::Future, marker::PhantomData};

use relq_core::NewJob;
use serde::{Serialize, de::DeserializeOwned};

use crate::{Failure, Handler, JobContext};

/// A handler that decodes payloads from JSON into a `T`. [`json`] makes it.
pub struct Json<T, F> {
    handler: F,
    payload: PhantomData<fn() -> T>,
}

/// Makes a handler from a function that takes a `T` and the job. For jobs of
/// several types on one queue, use a [`Router`](crate::Router).
///
/// A payload that is not JSON of `T` is a failed attempt, retried by the retry policy:
/// a worker of a newer version may be able to read it. After its last attempt it is a
/// dead letter, with its bytes and the reason.
///
/// ```
/// use relq_worker::{Failure, JobContext, json};
///
/// #[derive(serde::Deserialize)]
/// struct Email { to: String }
///
/// async fn send(email: Email, _job: JobContext) -> Result<(), Failure> {
///     println!("to {}", email.to);
///     Ok(())
/// }
/// let handler = json(send);
/// ```
pub fn json<T, F, Fut, E>(handler: F) -> Json<T, F>
where
    T: DeserializeOwned + Send + 'static,
    F: Fn(T, JobContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), E>> + Send,
    E: Into<Failure>,
{
    Json { handler, payload: PhantomData }
}

/// A job whose payload is `value` as JSON, for a worker whose handler is [`json`].
///
/// ```
/// #[derive(serde::Serialize)]
/// struct Email { to: String }
///
/// let job = relq_worker::json_job(&Email { to: "anna@example.org".into() })?;
/// assert_eq!(&job.payload[..], br#"{"to":"anna@example.org"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// # Errors
/// When `value` cannot be JSON, such as a map whose keys are not strings.
pub fn json_job<T: Serialize + ?Sized>(value: &T) -> Result<NewJob, serde_json::Error> {
    serde_json::to_vec(value).map(NewJob::new)
}

impl<T, F, Fut, E> Handler for Json<T, F>
where
    T: DeserializeOwned + Send + 'static,
    F: Fn(T, JobContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), E>> + Send,
    E: Into<Failure>,
{
    async fn handle(&self, job: JobContext) -> Result<(), Failure> {
        let value = serde_json::from_slice(job.payload()).map_err(|error| {
            Failure::retry(format!(
                "the payload is not JSON of {}: {error}",
                type_name::<T>()
            ))
        })?;
        (self.handler)(value, job).await.map_err(Into::into)
    }
}

impl<T, F> fmt::Debug for Json<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json<{}>", type_name::<T>())
    }
}
