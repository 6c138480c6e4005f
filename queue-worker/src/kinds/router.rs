//! The handler that runs the handler of each job's kind.

use std::{collections::BTreeMap, fmt, sync::Arc, task::Context, time::Duration};

use crate::{
    DEFAULT_PAUSED_DELAY, Failure, Handler, Job, JobContext, JobHandler, KIND_HEADER,
    PausedKinds, RetryPolicy,
    handler::Attempt,
    kinds::{
        name::assert_valid,
        route::{KindRoute, RawRoute, Route, StatefulRoute, Undecodable},
    },
};

/// A handler that runs the handler of each job's kind.
///
/// ```
/// use std::sync::Arc;
/// use relq_worker::{Failure, Job, JobContext, Router, State, Worker, WorkerError};
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct SendEmail { to: String }
///
/// impl Job for SendEmail {
///     const KIND: &'static str = "send-email";
/// }
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct DeleteUser { user: u64 }
///
/// impl Job for DeleteUser {
///     const KIND: &'static str = "delete-user";
/// }
///
/// #[derive(Clone)]
/// struct App { sender: String }
///
/// async fn send_email(email: SendEmail, State(app): State<App>) -> Result<(), Failure> {
///     println!("from {} to {}", app.sender, email.to);
///     Ok(())
/// }
///
/// async fn delete_user(user: DeleteUser, job: JobContext) -> Result<(), Failure> {
///     println!("user {}, attempt {}", user.user, job.attempt());
///     Ok(())
/// }
///
/// # async fn example(
/// #     queue: Arc<dyn relq_core::ReliableQueue>,
/// # ) -> Result<(), WorkerError> {
/// let router = Router::new()
///     .job(send_email)
///     .job(delete_user)
///     .with_state(App { sender: "shop@example.org".into() });
/// Worker::new(queue).handle_signals().run(router).await?;
/// # Ok(())
/// # }
/// ```
///
/// `S` is the state that the handlers need and that is not set yet. A router whose `S`
/// is `()` is a [`Handler`].
///
/// If the router has no handler for the kind of a job, or the payload cannot be decoded
/// to the type of the kind, the attempt fails and is retried: a worker of a newer version
/// may be able to run the job.
/// After its last attempt the job is a dead letter, with its bytes and the reason (R3).
/// [`postpone_unknown`](Self::postpone_unknown) and
/// [`postpone_undecodable`](Self::postpone_undecodable) let such jobs wait instead.
///
/// Clones are cheap and share the handlers and the [paused kinds](Self::paused_kinds), so
/// that several workers of a process can run one router.
pub struct Router<S = ()> {
    kinds: BTreeMap<&'static str, Arc<dyn Route<S>>>,
    raw: Option<Arc<dyn Route<S>>>,
    postponing: Postponing,
}

/// Which jobs are postponed, and for how long.
#[derive(Clone)]
struct Postponing {
    paused: PausedKinds,
    paused_delay: Duration,
    unknown_delay: Option<Duration>,
    undecodable_delay: Option<Duration>,
}

impl<S: Send + Sync + 'static> Router<S> {
    /// A router without a handler.
    pub fn new() -> Self {
        let postponing = Postponing {
            paused: PausedKinds::default(),
            paused_delay: DEFAULT_PAUSED_DELAY,
            unknown_delay: None,
            undecodable_delay: None,
        };
        Self { kinds: BTreeMap::new(), raw: None, postponing }
    }

    /// Runs `handler` on the jobs of the kind that it takes. See [`JobHandler`] for the
    /// functions that can be handlers.
    ///
    /// # Panics
    /// When the kind has a handler already, which is an error of the program.
    #[must_use]
    #[track_caller]
    pub fn job<H, Arguments>(mut self, handler: H) -> Self
    where
        H: JobHandler<Arguments, S>,
        Arguments: 'static,
    {
        const { assert_valid::<H::Job>() };
        let kind = <H::Job as Job>::KIND;
        let earlier = self.kinds.insert(kind, Arc::new(KindRoute::new(handler)));
        assert!(earlier.is_none(), "the kind {kind:?} has two handlers");
        self
    }

    /// Runs `handler` on the jobs without a kind: those of other clients, such as
    /// `LPUSH emails hello` (R20), and those that were pushed without a [`Job`]. Without
    /// such a handler they are failed attempts.
    ///
    /// ```
    /// use relq_worker::{Failure, JobContext, Router};
    ///
    /// let router: Router = Router::new().raw(async |job: JobContext| {
    ///     println!("a job of another client: {:?}", job.payload());
    ///     Ok::<_, Failure>(())
    /// });
    /// ```
    ///
    /// # Panics
    /// When there is such a handler already, which is an error of the program.
    #[must_use]
    #[track_caller]
    pub fn raw(mut self, handler: impl Handler) -> Self {
        let earlier = self.raw.replace(Arc::new(RawRoute(handler)));
        assert!(earlier.is_none(), "the jobs without a kind have two handlers");
        self
    }

    /// Postpones jobs of a kind without a handler here for `delay`, without counting an
    /// attempt (R26), so that they wait for a worker that has such a handler. Without
    /// this setting they are failed attempts.
    ///
    /// With this setting, a job of a kind that no worker knows is never buried: it is
    /// claimed and postponed without end, unless it has an expiry. Each time costs the
    /// store a claim and a settlement.
    #[must_use]
    pub fn postpone_unknown(mut self, delay: Duration) -> Self {
        self.postponing.unknown_delay = Some(delay);
        self
    }

    /// Postpones jobs whose payload does not fit the type of their kind for `delay`,
    /// without counting an attempt (R26), so that they wait for a worker of a version
    /// that decodes them. Without this setting they are failed attempts.
    ///
    /// With this setting, a payload that no version can decode, such as invalid JSON of
    /// another producer, is never buried: its job is claimed and postponed without end,
    /// unless it has an expiry. Each time costs the store a claim and a settlement.
    #[must_use]
    pub fn postpone_undecodable(mut self, delay: Duration) -> Self {
        self.postponing.undecodable_delay = Some(delay);
        self
    }

    /// Sets how long a claimed job of a [paused kind](Self::paused_kinds) is postponed;
    /// the default is [`DEFAULT_PAUSED_DELAY`]. So a job may run this much later than
    /// the end of the pause.
    #[must_use]
    pub fn postpone_paused(mut self, delay: Duration) -> Self {
        self.postponing.paused_delay = delay;
        self
    }

    /// The handle that pauses kinds for the workers of this router, before they start
    /// and while they run. It holds for this process only.
    pub fn paused_kinds(&self) -> PausedKinds {
        self.postponing.paused.clone()
    }

    /// Sets the state that the handlers take as [`State`](crate::State).
    #[must_use]
    pub fn with_state(self, state: S) -> Router {
        let state = Arc::new(state);
        let with_state = |route| -> Arc<dyn Route<()>> {
            Arc::new(StatefulRoute { route, state: Arc::clone(&state) })
        };
        let kinds = self.kinds.into_iter();
        Router {
            kinds: kinds.map(|(kind, route)| (kind, with_state(route))).collect(),
            raw: self.raw.map(with_state),
            postponing: self.postponing,
        }
    }

    fn route(&self, job: &JobContext) -> Option<&dyn Route<S>> {
        match job.kind() {
            Some(kind) => self.kinds.get(kind).map(Arc::as_ref),
            None => self.raw.as_deref(),
        }
    }

    /// The failure of a job whose kind is paused.
    fn paused(&self, job: &JobContext) -> Option<Failure> {
        let Postponing { paused, paused_delay, .. } = &self.postponing;
        let kind = job.kind()?;
        let postponed = || {
            Failure::postpone(
                *paused_delay,
                format!("the kind {kind:?} is paused here"),
            )
        };
        paused.is_paused(kind).then(postponed)
    }

    fn without_handler(&self, job: &JobContext) -> Failure {
        let kinds: Vec<_> = self.kinds.keys().copied().collect();
        let kinds = kinds.join(", ");
        let Some(kind) = job.kind() else {
            return Failure::retry(format!(
                "the job has no header {KIND_HEADER:?}, and this worker has no handler \
                 for such jobs; its kinds are: {kinds}"
            ));
        };
        let reason = format!(
            "the kind {kind:?} has no handler in this worker; its kinds are: {kinds}"
        );
        postponed_or_retried(self.postponing.unknown_delay, reason)
    }

    fn undecodable(&self, Undecodable(reason): Undecodable) -> Failure {
        postponed_or_retried(self.postponing.undecodable_delay, reason)
    }
}

/// The failure of a job that a worker of another version may be able to run.
fn postponed_or_retried(delay: Option<Duration>, reason: String) -> Failure {
    match delay {
        Some(delay) => Failure::postpone(delay, reason),
        None => Failure::retry(reason),
    }
}

impl Router {
    /// Passes the job to the handler of its kind. Returns the attempt, which is not started
    /// yet, or why there is none.
    fn begin(&self, job: JobContext) -> Result<Attempt<'_>, Failure> {
        if let Some(failure) = self.paused(&job) {
            return Err(failure);
        }
        let Some(route) = self.route(&job) else {
            return Err(self.without_handler(&job));
        };
        route.handle(job, &()).map_err(|undecodable| self.undecodable(undecodable))
    }
}

impl Handler for Router {
    fn handle(
        &self,
        job: JobContext,
    ) -> impl Future<Output = Result<(), Failure>> + Send {
        // The handler gets the job in this call, and not at the first poll: a service then
        // takes the clone that is ready for this job before the worker counts it as used.
        let attempt = self.begin(job);
        async move { attempt?.await }
    }

    /// A claim may return a job of any kind, so the handler of jobs without a kind must
    /// be ready for each of them. The other handlers are functions, which always are.
    fn ready_for(
        &self,
        jobs: usize,
        context: &mut Context<'_>,
    ) -> Result<usize, Failure> {
        self.raw.as_ref().map_or(Ok(jobs), |raw| raw.ready_for(jobs, context))
    }

    fn timeout(&self, job: &JobContext) -> Option<Duration> {
        self.route(job)?.timeout(job)
    }

    fn retry_policy(&self, job: &JobContext) -> Option<RetryPolicy> {
        self.route(job)?.retry_policy(job)
    }
}

impl<S: Send + Sync + 'static> Default for Router<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> Clone for Router<S> {
    fn clone(&self) -> Self {
        let Self { kinds, raw, postponing } = self;
        Self { kinds: kinds.clone(), raw: raw.clone(), postponing: postponing.clone() }
    }
}

impl<S> fmt::Debug for Router<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router")
            .field("kinds", &self.kinds.keys())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use relq_core::{Delivery, JobId, Receipt};
    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::failure::Then;

    const SECOND: Duration = Duration::from_secs(1);

    #[derive(Serialize, Deserialize)]
    struct Slow;

    impl Job for Slow {
        const KIND: &'static str = "slow";

        fn timeout() -> Option<Duration> {
            Some(SECOND)
        }

        fn retry_policy() -> Option<RetryPolicy> {
            RetryPolicy::exponential(SECOND, SECOND).ok()
        }
    }

    struct Raw;

    impl Handler for Raw {
        async fn handle(&self, _job: JobContext) -> Result<(), Failure> {
            Ok(())
        }

        fn timeout(&self, _job: &JobContext) -> Option<Duration> {
            Some(2 * SECOND)
        }

        fn retry_policy(&self, _job: &JobContext) -> Option<RetryPolicy> {
            RetryPolicy::exponential(2 * SECOND, 2 * SECOND).ok()
        }
    }

    /// A handler that counts the jobs that are passed to it.
    #[derive(Default, Clone)]
    struct Counting(Arc<AtomicUsize>);

    impl Handler for Counting {
        fn handle(
            &self,
            _job: JobContext,
        ) -> impl Future<Output = Result<(), Failure>> + Send {
            self.0.fetch_add(1, SeqCst);
            async { Ok(()) }
        }
    }

    /// A service takes the clone that is ready for a job in the call. The worker counts the
    /// clone as used when the call returns, so it must be taken by then.
    #[test]
    fn a_handler_gets_its_job_in_the_call() {
        let got = Counting::default();
        let router = Router::new().raw(got.clone());

        let _unpolled = router.handle(job(None));

        assert_eq!(got.0.load(SeqCst), 1);
    }

    fn job(kind: Option<&str>) -> JobContext {
        let receipt = Receipt::new(JobId::new("job").unwrap(), 1, "token");
        let mut delivery = Delivery::new(receipt, "null", 30 * SECOND);
        if let Some(kind) = kind {
            delivery.headers.set(KIND_HEADER, kind);
        }
        JobContext::new(delivery)
    }

    /// The time-out and the policy of each handler hold, also in a router with a state.
    #[test]
    fn each_handler_keeps_its_settings() {
        let router = Router::new()
            .job(async |_: Slow| Ok::<_, Failure>(()))
            .raw(Raw)
            .with_state("the state");
        let settings = |kind| {
            let job = job(kind);
            (router.timeout(&job), router.retry_policy(&job))
        };
        let policy = |time| RetryPolicy::exponential(time, time).ok();

        assert_eq!(settings(Some("slow")), (Some(SECOND), policy(SECOND)));
        assert_eq!(settings(None), (Some(2 * SECOND), policy(2 * SECOND)));
        assert_eq!(settings(Some("unknown")), (None, None));
    }

    /// A kind whose type does not fit the payload of [`job`].
    #[derive(Serialize, Deserialize)]
    struct Count(u32);

    impl Job for Count {
        const KIND: &'static str = "count";
    }

    /// The settings of a router that postpone jobs.
    #[derive(Debug, Clone, Copy)]
    struct Postpones {
        unknown: bool,
        undecodable: bool,
        paused: bool,
    }

    const UNKNOWN: Duration = SECOND;
    const UNDECODABLE: Duration = Duration::from_secs(2);
    const PAUSED: Duration = Duration::from_secs(3);

    impl Postpones {
        fn set<S: Send + Sync + 'static>(self, mut router: Router<S>) -> Router<S> {
            if self.unknown {
                router = router.postpone_unknown(UNKNOWN);
            }
            if self.undecodable {
                router = router.postpone_undecodable(UNDECODABLE);
            }
            if self.paused {
                let paused = router.paused_kinds();
                for kind in ["slow", "count", "unknown"] {
                    paused.pause(kind);
                }
                router = router.postpone_paused(PAUSED);
            }
            router
        }
    }

    /// The routers with each combination of these settings, made before the state is set and
    /// after it.
    fn routers() -> Vec<(Postpones, Router)> {
        let mut routers = Vec::new();
        for bits in 0..8 {
            let is_set = |bit: u8| bits & (1 << bit) != 0;
            let postpones = Postpones {
                unknown: is_set(0),
                undecodable: is_set(1),
                paused: is_set(2),
            };
            let router = || {
                Router::new()
                    .job(async |_: Slow| Ok::<_, Failure>(()))
                    .job(async |_: Count| Ok::<_, Failure>(()))
            };
            let state_last = postpones.set(router()).with_state("the state");
            let state_first = postpones.set(router().with_state("the state"));
            routers.extend([(postpones, state_last), (postpones, state_first)]);
        }
        routers
    }

    /// How the worker settles a job of this kind if it fails. `None` if the job is done.
    async fn then(router: &Router, kind: Option<&str>) -> Option<Then> {
        router.handle(job(kind)).await.err().map(|failure| failure.then)
    }

    /// R26: a job of a paused kind waits whether or not the router could run it. Otherwise each
    /// setting postpones the jobs that it is for, and no others.
    #[tokio::test]
    async fn each_setting_postpones_the_jobs_of_its_own() {
        for (postpones, router) in routers() {
            let paused = postpones.paused.then_some(Then::Postpone(PAUSED));
            let or = |is_set: bool, delay| match paused {
                Some(paused) => Some(paused),
                None if is_set => Some(Then::Postpone(delay)),
                None => Some(Then::Retry),
            };
            for (kind, expected) in [
                ("slow", paused),
                ("count", or(postpones.undecodable, UNDECODABLE)),
                ("unknown", or(postpones.unknown, UNKNOWN)),
            ] {
                let found = then(&router, Some(kind)).await;
                assert_eq!(found, expected, "of the kind {kind}, {postpones:?}");
            }
        }
    }

    /// A job without a kind waits for no version of the application, so it fails, and is buried
    /// in the end.
    #[tokio::test]
    async fn a_job_without_a_kind_is_not_postponed() {
        for (postpones, router) in routers() {
            let found = then(&router, None).await;
            assert_eq!(found, Some(Then::Retry), "without a kind, {postpones:?}");
        }
    }

    #[test]
    #[should_panic(expected = "the jobs without a kind have two handlers")]
    fn a_second_raw_handler_is_refused() {
        let _router: Router = Router::new().raw(Raw).raw(Raw);
    }
}
