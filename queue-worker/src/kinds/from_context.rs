//! The arguments of a handler beside the job's value.

use crate::{Failure, JobContext};

/// A type that a handler of a [`Router`](crate::Router) can take as an argument after
/// the job's value.
///
/// [`JobContext`] and [`State`] are such types. An application can add its own, such as
/// the tenant that a header names:
///
/// ```
/// use relq_worker::{Failure, FromContext, JobContext};
///
/// struct Tenant(String);
///
/// impl<S> FromContext<S> for Tenant {
///     fn from_context(job: &JobContext, _state: &S) -> Result<Self, Failure> {
///         let tenant = job.headers().get("tenant");
///         let tenant = tenant.ok_or_else(|| Failure::dead("the job has no tenant"))?;
///         Ok(Self(tenant.to_owned()))
///     }
/// }
/// ```
pub trait FromContext<S>: Sized {
    /// The argument for an attempt at `job`, from the job and the state of the router.
    ///
    /// # Errors
    /// The attempt fails with this failure, and the handler is not called.
    fn from_context(job: &JobContext, state: &S) -> Result<Self, Failure>;
}

impl<S> FromContext<S> for JobContext {
    fn from_context(job: &JobContext, _state: &S) -> Result<Self, Failure> {
        Ok(job.clone())
    }
}

/// The state of the application, or a part of it, as an argument of a handler.
///
/// [`Router::with_state`](crate::Router::with_state) sets the state. Each attempt gets a
/// clone, so put a state that is expensive to clone into an [`Arc`](std::sync::Arc).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct State<T>(pub T);

impl<S, T: FromRef<S>> FromContext<S> for State<T> {
    fn from_context(_job: &JobContext, state: &S) -> Result<Self, Failure> {
        Ok(Self(T::from_ref(state)))
    }
}

/// A part of a state `S`, so that a handler takes only what it needs. The whole state is
/// a part of itself.
///
/// ```
/// use relq_worker::FromRef;
///
/// #[derive(Clone)]
/// struct Mailer;
///
/// struct App { mailer: Mailer }
///
/// impl FromRef<App> for Mailer {
///     fn from_ref(app: &App) -> Self {
///         app.mailer.clone()
///     }
/// }
/// ```
pub trait FromRef<S> {
    /// The part of `state`.
    fn from_ref(state: &S) -> Self;
}

impl<S: Clone> FromRef<S> for S {
    fn from_ref(state: &S) -> Self {
        state.clone()
    }
}
