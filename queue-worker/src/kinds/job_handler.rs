//! The functions that can be handlers of a kind.

use std::future::Future;

use crate::{Failure, FromContext, Job, JobContext};

/// A function that handles the jobs of one kind.
///
/// Such a function is an `async fn`, or a closure like it, that takes a [`Job`] and then
/// up to four arguments that implement [`FromContext`]. It returns `Result<(), E>`, where
/// `E` converts into a [`Failure`], as all errors do. No other type need implement this
/// trait.
///
/// ```
/// # #[derive(serde::Serialize, serde::Deserialize)]
/// # struct SendEmail;
/// # impl relq_worker::Job for SendEmail { const KIND: &'static str = "send-email"; }
/// # #[derive(Clone)]
/// # struct Mailer;
/// use relq_worker::{Failure, JobContext, State};
///
/// async fn short(email: SendEmail) -> Result<(), Failure> { Ok(()) }
///
/// async fn long(
///     email: SendEmail,
///     State(mailer): State<Mailer>,
///     job: JobContext,
/// ) -> Result<(), std::io::Error> {
///     Ok(())
/// }
/// # relq_worker::Router::new().job(long).with_state(Mailer);
/// ```
pub trait JobHandler<Arguments, S>: Send + Sync + 'static {
    /// The kind of job.
    type Job: Job;

    /// Runs one job. `value` is its decoded payload, and the other arguments of the
    /// function are made from `job` and `state`.
    fn handle(
        &self,
        value: Self::Job,
        job: &JobContext,
        state: &S,
    ) -> impl Future<Output = Result<(), Failure>> + Send;
}

macro_rules! functions_with {
    ($($argument:ident),*) => {
        impl<F, Fut, E, T, S, $($argument),*> JobHandler<(T, $($argument,)*), S> for F
        where
            F: Fn(T, $($argument),*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = Result<(), E>> + Send,
            E: Into<Failure>,
            T: Job,
            $($argument: FromContext<S>,)*
        {
            type Job = T;

            #[allow(unused_variables, reason = "a function may take the job alone")]
            fn handle(
                &self,
                value: T,
                job: &JobContext,
                state: &S,
            ) -> impl Future<Output = Result<(), Failure>> + Send {
                let call = || Ok(self(value, $($argument::from_context(job, state)?),*));
                let called: Result<Fut, Failure> = call();
                async move { called?.await.map_err(Into::into) }
            }
        }
    };
}

functions_with!();
functions_with!(A);
functions_with!(A, B);
functions_with!(A, B, C);
functions_with!(A, B, C, D);
