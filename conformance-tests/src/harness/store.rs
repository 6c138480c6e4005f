//! The fixture of a case: a private store, its clock, and the actors that use it.

use std::{collections::BTreeSet, num::NonZeroU32, sync::Arc, time::Duration};

use relq_core::{
    Error, QueueName,
    environment::{Clock, Environment, OsRandomness},
};

use crate::{
    Profile, Subject,
    harness::{
        actor::Actor,
        call_log::CallLog,
        clock::{Skew, WrongClock},
        logged_queue::LoggedQueue,
        room::{Rooms, in_database, size},
        store_site::StoreSite,
        times::PAST_BRIEF,
    },
    proxy::{Fault, FaultProxy},
};

/// The most jobs that one step handles for an actor that [`Store::actor_in_steps`]
/// opens.
pub(crate) const STEP: NonZeroU32 = NonZeroU32::new(7).expect("not zero");

/// The name of the queue that a case uses unless it names another.
const QUEUE: &str = "jobs";

fn on_clock(clock: Arc<dyn Clock>) -> Environment {
    Environment::new(clock, Arc::new(OsRandomness))
}

/// A private store for one case, with its clock and its actors.
pub(crate) struct Store {
    subject: Box<dyn Subject>,
    site: Arc<StoreSite>,
    rooms: Rooms,
    calls: CallLog,
}

impl Store {
    pub(crate) fn start(subject: impl Subject, profile: Profile) -> Self {
        let rooms = Rooms::new(subject.room());
        rooms.of(&queue_named(QUEUE));
        let site = Arc::new(StoreSite::start(profile));
        Self { subject: Box::new(subject), site, rooms, calls: CallLog::default() }
    }

    /// Notes the calls of all actors in `calls`.
    pub(crate) fn noting_calls_in(self, calls: &CallLog) -> Self {
        Self { calls: calls.clone(), ..self }
    }

    /// Calls [`Subject::prepare`] if the store is behind the proxy.
    pub(crate) async fn prepare(&self) {
        if let StoreSite::Proxied { proxy, .. } = &*self.site {
            self.subject.prepare(proxy).await.expect("the proxy can be prepared");
        }
    }

    /// Opens an actor of that name on the case's queue.
    pub(crate) async fn actor(&self, name: &str) -> Actor {
        self.actor_on(name, QUEUE).await
    }

    /// Opens an actor of that name on another queue.
    pub(crate) async fn actor_on(&self, name: &str, queue: &str) -> Actor {
        let right = on_clock(self.site.clock());
        self.connect(name, queue, &right).await
    }

    /// Opens two actors, with a connection each, and two that share one. A backend may hear
    /// of its own calls in another way than of those on other connections.
    pub(crate) async fn pairs(&self) -> [(Actor, Actor); 2] {
        let (one, other) = (self.actor("w").await, self.actor("o").await);
        let shared = self.actor("shared").await;
        [(one, other), (shared.clone(), shared.acting_as("sharing"))]
    }

    /// Opens an actor of that name whose backend takes steps of at most [`STEP`] jobs,
    /// so that few jobs take several steps.
    pub(crate) async fn actor_in_steps(&self, name: &str) -> Actor {
        self.actor_in_steps_on(name, QUEUE).await
    }

    /// Does the same as [`Self::actor_in_steps`] on another queue.
    pub(crate) async fn actor_in_steps_on(&self, name: &str, queue: &str) -> Actor {
        let right = on_clock(self.site.clock()).with_max_jobs_per_step(STEP);
        self.connect(name, queue, &right).await
    }

    /// Opens an actor whose wall clock is wrong by `skew`.
    pub(crate) async fn actor_with_clock(&self, name: &str, skew: Skew) -> Actor {
        let clock = Arc::new(WrongClock::new(self.site.clock(), skew));
        let wrong = on_clock(clock);
        self.connect(name, QUEUE, &wrong).await
    }

    /// Opens an actor of that name on the case's queue, or returns the backend's error.
    pub(crate) async fn try_actor(&self, name: &str) -> Result<Actor, Error> {
        let right = on_clock(self.site.clock());
        self.try_connect(name, QUEUE, &right).await
    }

    async fn connect(&self, name: &str, queue: &str, with: &Environment) -> Actor {
        let connected = self.try_connect(name, queue, with).await;
        connected.expect("an actor connects")
    }

    async fn try_connect(
        &self,
        name: &str,
        queue: &str,
        with: &Environment,
    ) -> Result<Actor, Error> {
        let queue = queue_named(queue);
        let endpoint = in_database(&self.site.endpoint(name), self.rooms.of(&queue));
        let queue = self.subject.connect(&endpoint, &queue, with).await?;
        let queue = Arc::new(LoggedQueue::new(queue, name, self.calls.clone()));
        Ok(Actor::new(queue, name, Arc::clone(&self.site), self.calls.clone()))
    }

    /// Advances the store's clock.
    pub(crate) async fn advance(&self, duration: Duration) {
        self.site.advance(duration).await;
    }

    /// Sets the store's clock back, as the correction of a clock that was ahead does. The
    /// clock of a server without the proxy cannot be set.
    pub(crate) fn set_clock_back(&self, by: Duration) {
        self.site.set_clock_back(by);
    }

    /// Makes the store's clock stand still until the case advances it, so that several
    /// calls have equal times. The clock of a server without the proxy runs on.
    pub(crate) fn stop_clock(&self) {
        self.site.stop_clock();
    }

    /// The environment of actors whose clock is right.
    pub(crate) fn environment(&self) -> Environment {
        on_clock(self.site.clock())
    }

    /// The time since a fixed moment of the past, by the store's clock.
    pub(crate) fn elapsed(&self) -> Duration {
        self.site.clock().elapsed()
    }

    /// Waits for `call`, and advances the clock meanwhile by up to `limit`. Returns the
    /// call's result, and how long it took by the store's clock.
    #[track_caller]
    pub(crate) fn within<T>(
        &self,
        limit: Duration,
        call: impl Future<Output = T>,
    ) -> impl Future<Output = (T, Duration)> {
        self.site.within(limit, &self.calls, call)
    }

    /// Does the same as [`Self::within`] with a call that a notification must end. On an
    /// embedded store no sleep of an actor ends meanwhile, so a call that only polls does
    /// not end, whatever its interval is.
    #[track_caller]
    pub(crate) fn woken_within<T>(
        &self,
        limit: Duration,
        call: impl Future<Output = T>,
    ) -> impl Future<Output = (T, Duration)> {
        let woken = self.within(limit, call);
        async move {
            let _held = self.site.hold_sleeps();
            woken.await
        }
    }

    /// The calls of the store's actors.
    pub(crate) fn calls(&self) -> &CallLog {
        &self.calls
    }

    /// The longest time in which a claim counts as woken, or a call as returning at once.
    pub(crate) fn response_limit(&self) -> Duration {
        self.site.response_limit()
    }

    /// The time limit for a woken claim. Behind the proxy it is below `lateness`, after
    /// which a backend polls, so that a claim that only polled exceeds the limit.
    pub(crate) fn wake_limit(&self, lateness: Duration) -> Duration {
        let limit = self.response_limit();
        match &*self.site {
            StoreSite::Proxied { .. } if !lateness.is_zero() => lateness.min(limit),
            _ => limit,
        }
    }

    /// Completes when the calls in progress have begun to wait, as far as the suite can
    /// see that. If it completes too early, the case detects less, but does not fail.
    pub(crate) async fn settled(&self) {
        self.site.settled().await;
    }

    /// Lets all `BRIEF` leases that were taken before this call expire.
    pub(crate) async fn outlast_brief_leases(&self) {
        self.advance(PAST_BRIEF).await;
    }

    /// Pushes `payload` by the command of a client that does not use relq.
    pub(crate) async fn push_raw(&self, payload: &[u8]) {
        let words = self.subject.plain_push(&queue_named(QUEUE), payload);
        self.site.tell(&words).await;
    }

    /// Whether a plain push wakes a waiting claim.
    pub(crate) fn plain_pushes_wake(&self) -> bool {
        self.subject.plain_pushes_wake()
    }

    /// Sends a command to the server, past the backend, in the database of the case's
    /// queue. Returns the raw reply.
    pub(crate) async fn tell(&self, words: &[&[u8]]) -> Vec<u8> {
        let words: Vec<_> = words.iter().map(|word| word.to_vec()).collect();
        self.site.tell(&words).await
    }

    /// Whether the key belongs to the case's queue.
    pub(crate) fn owns(&self, key: &[u8]) -> bool {
        self.subject.owns(&queue_named(QUEUE), key)
    }

    /// Returns the first of `names`: as many as the case's server has room for, if each
    /// is the name of a queue.
    pub(crate) fn fit<'a, T>(&self, names: &'a [T]) -> &'a [T] {
        self.rooms.fit(names)
    }

    /// Whether the backend keeps its jobs in files, and not on a Redis server.
    pub(crate) fn is_embedded(&self) -> bool {
        matches!(&*self.site, StoreSite::Embedded { .. })
    }

    /// On Redis: the number of elements, fields, members and strings of all keys in the
    /// database of the case's queue. Embedded: the number of records, or 0 if the subject
    /// does not count them. Then the case is listed as ignored if its scope is `counted`.
    pub(crate) async fn size(&self) -> u64 {
        if let StoreSite::Embedded { directory, .. } = &*self.site {
            let endpoint = directory.path().to_str().expect("the path is UTF-8");
            return self.subject.records().map_or(0, |count| count(endpoint));
        }
        let reply = self.site.tell(&size()).await;
        let text = String::from_utf8_lossy(&reply);
        let number = text.trim_start_matches(':').trim_end().parse();
        number.expect("the reply is a number")
    }

    /// The names of the commands that were sent through the proxy. Empty without a
    /// proxy.
    pub(crate) fn commands(&self) -> BTreeSet<String> {
        let StoreSite::Proxied { proxy, .. } = &*self.site else {
            return BTreeSet::new();
        };
        let labels = proxy.steps().into_iter().map(|step| step.label());
        labels.filter_map(|it| it.split(' ').next().map(str::to_owned)).collect()
    }

    /// Lets the server refuse the actor's next `steps` commands with this error.
    /// Returns how many commands the actor has sent before.
    pub(crate) fn refuse(&self, actor: &str, steps: u32, error: &str) -> u32 {
        // The actor may send commands meanwhile. If the number were read again for each
        // step, one of the next steps would have no fault.
        let before = self.steps_of(actor);
        for step in 1..=steps {
            self.proxy().plan(actor, before + step, Fault::Error(error.to_owned()));
        }
        before
    }

    /// Plans a fault for one of the actor's next commands, counted from 1.
    pub(crate) fn inject(&self, actor: &str, command: u32, fault: Fault) {
        self.proxy().plan(actor, self.steps_of(actor) + command, fault);
    }

    /// How many commands the actor has sent.
    pub(crate) fn steps_of(&self, actor: &str) -> u32 {
        self.proxy().actor(actor).expect("the system gives a socket").steps()
    }

    /// Removes the planned faults that have not fired.
    pub(crate) async fn heal(&self) {
        self.proxy().heal().await.expect("the proxy heals");
    }

    fn proxy(&self) -> &FaultProxy {
        match &*self.site {
            StoreSite::Proxied { proxy, .. } => proxy,
            _ => panic!("only a server behind the proxy refuses at will"),
        }
    }

    /// Checks the store after a case: every job is in exactly one place (R23), and
    /// every key belongs to a queue of the case (R19).
    pub(crate) async fn audit_all_queues(&self) {
        for queue in self.rooms.all().keys() {
            let auditor = self.actor_on("auditor", queue.as_str()).await;
            let audit = auditor.audit().await.expect("an audit of a healthy store");
            assert_eq!(audit.problems, [""; 0], "R23: the audit of queue {queue}");
            auditor.assert_audit_counts(audit.jobs).await;
        }
        let foreign = self.rooms.foreign_keys(&self.site, &*self.subject).await;
        assert!(foreign.is_empty(), "R19, NO-FOREIGN-KEYS: {}", foreign.join(" "));
    }
}

fn queue_named(name: &str) -> QueueName {
    QueueName::new(name).expect("cases use valid queue names")
}
