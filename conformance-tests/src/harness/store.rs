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
        clock::{Skew, WrongClock},
        room::{Rooms, in_database, size},
        store_site::StoreSite,
        times::{PAST_BRIEF, WOKEN},
    },
    proxy::{Fault, FaultProxy},
};

/// The most jobs of a step of an actor that goes in small steps.
pub(crate) const STEP: NonZeroU32 = NonZeroU32::new(7).expect("not zero");

/// The default queue of a case.
const QUEUE: &str = "jobs";

fn on_clock(clock: Arc<dyn Clock>) -> Environment {
    Environment::new(clock, Arc::new(OsRandomness))
}

/// A private store for one case.
pub(crate) struct Store {
    subject: Box<dyn Subject>,
    site: Arc<StoreSite>,
    rooms: Rooms,
}

impl Store {
    pub(crate) fn start(subject: impl Subject, profile: Profile) -> Self {
        let rooms = Rooms::new(subject.room());
        rooms.of(&queue_named(QUEUE));
        let site = Arc::new(StoreSite::start(profile));
        Self { subject: Box::new(subject), site, rooms }
    }

    /// Lets the subject prepare the proxy, if there is one.
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

    /// Opens an actor of that name whose backend takes steps of at most [`STEP`] jobs, so
    /// that few jobs take several steps.
    pub(crate) async fn actor_in_steps(&self, name: &str) -> Actor {
        let right = on_clock(self.site.clock()).with_max_jobs_per_step(STEP);
        self.connect(name, QUEUE, &right).await
    }

    /// Opens an actor whose wall clock is wrong.
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
        Ok(Actor::new(queue, name, Arc::clone(&self.site)))
    }

    /// Advances the store's clock.
    pub(crate) async fn advance(&self, duration: Duration) {
        self.site.advance(duration).await;
    }

    /// Stops the store's clock between advances, so that times of several calls are
    /// equal. The clock of a bare server keeps running.
    pub(crate) fn stop_clock(&self) {
        self.site.stop_clock();
    }

    /// The sources of time and randomness of actors whose clock is right.
    pub(crate) fn environment(&self) -> Environment {
        on_clock(self.site.clock())
    }

    /// The time since some fixed moment, by the store's clock.
    pub(crate) fn elapsed(&self) -> Duration {
        self.site.clock().elapsed()
    }

    /// Lets time pass while `call` waits, up to `limit`. Returns the call's result and
    /// how long it took by the store's clock.
    pub(crate) async fn within<T>(
        &self,
        limit: Duration,
        call: impl Future<Output = T>,
    ) -> (T, Duration) {
        self.site.within(limit, call).await
    }

    /// The time within which a woken claim must return. Behind the proxy it is exact:
    /// less than the lateness after which the backend polls by itself.
    pub(crate) fn wake_limit(&self, lateness: Duration) -> Duration {
        match &*self.site {
            StoreSite::Proxied { .. } if !lateness.is_zero() => lateness.min(WOKEN),
            _ => WOKEN,
        }
    }

    /// Completes when calls that are about to wait do wait, as far as this is visible
    /// from outside. If it completes too soon, the case is weaker, but not wrong.
    pub(crate) async fn settled(&self) {
        self.site.settled().await;
    }

    /// Lets all `BRIEF` leases that were taken before this call expire.
    pub(crate) async fn outlast_brief_leases(&self) {
        self.advance(PAST_BRIEF).await;
    }

    /// Pushes like a client that does not use relq.
    pub(crate) async fn push_raw(&self, payload: &[u8]) {
        let words = self.subject.plain_push(&queue_named(QUEUE), payload);
        self.site.tell(&words).await;
    }

    /// Whether a plain push wakes a waiting claim.
    pub(crate) fn plain_pushes_wake(&self) -> bool {
        self.subject.plain_pushes_wake()
    }

    /// Sends a client's command to the server, in the database of the case's queue.
    pub(crate) async fn tell(&self, words: &[&[u8]]) -> Vec<u8> {
        let words: Vec<_> = words.iter().map(|word| word.to_vec()).collect();
        self.site.tell(&words).await
    }

    /// Whether the key belongs to the case's queue.
    pub(crate) fn owns(&self, key: &[u8]) -> bool {
        self.subject.owns(&queue_named(QUEUE), key)
    }

    /// Returns the first names, as many queues as the case's server has room for.
    pub(crate) fn fit<'a, T>(&self, names: &'a [T]) -> &'a [T] {
        self.rooms.fit(names)
    }

    /// How many elements, fields and members all keys hold in the database of the
    /// case's queue.
    pub(crate) async fn size(&self) -> u64 {
        let reply = self.site.tell(&size()).await;
        let text = String::from_utf8_lossy(&reply);
        let number = text.trim_start_matches(':').trim_end().parse();
        number.expect("the reply is a number")
    }

    /// The first words of the commands sent through the proxy, if there is one.
    pub(crate) fn commands(&self) -> BTreeSet<String> {
        let StoreSite::Proxied { proxy, .. } = &*self.site else {
            return BTreeSet::new();
        };
        let labels = proxy.steps().into_iter().map(|step| step.label());
        labels.filter_map(|it| it.split(' ').next().map(str::to_owned)).collect()
    }

    /// Lets the server refuse the actor's next commands, as many as `steps`, with this
    /// error. Returns how many it has sent so far.
    pub(crate) fn refuse(&self, actor: &str, steps: u32, error: &str) -> u32 {
        for step in 1..=steps {
            self.inject(actor, step, Fault::Error(error.to_owned()));
        }
        self.steps_of(actor)
    }

    /// Plans a fault for one of the actor's next commands, counted from 1.
    pub(crate) fn inject(&self, actor: &str, command: u32, fault: Fault) {
        self.proxy().plan(actor, self.steps_of(actor) + command, fault);
    }

    /// How many commands the actor has sent.
    pub(crate) fn steps_of(&self, actor: &str) -> u32 {
        self.proxy().actor(actor).expect("the system gives a socket").steps()
    }

    /// Forgets the faults that were planned and have not fired.
    pub(crate) async fn heal(&self) {
        self.proxy().heal().await.expect("the proxy heals");
    }

    fn proxy(&self) -> &FaultProxy {
        match &*self.site {
            StoreSite::Proxied { proxy, .. } => proxy,
            _ => panic!("only a server behind the proxy refuses at will"),
        }
    }

    /// Checks what each case leaves behind: every job is in exactly one place (R23),
    /// and every key belongs to some queue (R19).
    pub(crate) async fn audit_all_queues(&self) {
        for queue in self.rooms.all().keys() {
            let auditor = self.actor_on("auditor", queue.as_str()).await;
            let audit = auditor.audit().await.expect("an audit of a healthy store");
            assert_eq!(audit.problems, [""; 0], "the audit of queue {queue}");
            auditor.assert_audit_counts(audit.jobs).await;
        }
        let foreign = self.rooms.foreign_keys(&self.site, &*self.subject).await;
        assert!(foreign.is_empty(), "NO-FOREIGN-KEYS: {}", foreign.join(" "));
    }
}

fn queue_named(name: &str) -> QueueName {
    QueueName::new(name).expect("cases use valid queue names")
}
