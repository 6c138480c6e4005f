//! The fixture of a case: a private store, its clock, and the actors that use it.

use std::{
    collections::BTreeSet, num::NonZeroU32, ops::Deref, sync::Arc, time::Duration,
};

use relq_core::{
    ClaimRequest, Delivery, Disposition, Error, JobId, NewJob, Queue, QueueName, Stats,
    WorkerId,
    capabilities::Capabilities,
    environment::{Clock, Environment, OsRandomness},
    operator::{JobState, JobView, PeekRequest},
    outcome::{Extended, Pushed, Recovered, Settled},
};

use crate::{
    Profile, Subject,
    harness::{
        clock::{Skew, WrongClock},
        room::{Rooms, in_database, size},
        store_site::StoreSite,
    },
    proxy::{Fault, FaultProxy},
    spec::class::Class,
};

/// A lease that outlives every case: its holder never loses it.
pub(crate) const HELD: Duration = Duration::from_secs(600);

/// A lease that a case lets expire. No case may rely on it being live.
pub(crate) const BRIEF: Duration = Duration::from_millis(200);

/// How far the store's clock is advanced for a `BRIEF` lease to expire.
pub(crate) const PAST_BRIEF: Duration = Duration::from_millis(230);

/// An expiry: a case delivers the job before it, or lets it pass.
pub(crate) const LIFE: Duration = Duration::from_secs(1);

/// How far the store's clock is advanced for a `LIFE` to pass.
pub(crate) const PAST_LIFE: Duration = Duration::from_millis(1030);

/// The longest time in which a claim counts as woken, or a call as returning at once,
/// on a machine that is busy with other cases.
pub(crate) const WOKEN: Duration = Duration::from_secs(3);

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
        Ok(Actor { queue, worker: worker(name), site: Arc::clone(&self.site) })
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

/// One client of the store, with a connection and a worker id of its own.
#[derive(Clone)]
pub(crate) struct Actor {
    queue: Arc<dyn Queue>,
    worker: WorkerId,
    site: Arc<StoreSite>,
}

impl Deref for Actor {
    type Target = dyn Queue;

    fn deref(&self) -> &Self::Target {
        &*self.queue
    }
}

impl Actor {
    pub(crate) fn worker(&self) -> &WorkerId {
        &self.worker
    }

    pub(crate) fn limits(&self) -> &relq_core::capabilities::Limits {
        let capabilities: &Capabilities = self.capabilities();
        &capabilities.limits
    }

    /// The promises of the backend, by its classes.
    pub(crate) fn class(&self) -> Class {
        Class::of(self.capabilities())
    }

    /// Returns an actor with the same connection and another worker id.
    pub(crate) fn acting_as(&self, name: &str) -> Self {
        Self { worker: worker(name), ..self.clone() }
    }

    /// Pushes jobs, all of which must be stored; returns their ids.
    pub(crate) async fn store<J: Into<NewJob>>(
        &self,
        jobs: impl IntoIterator<Item = J>,
    ) -> Vec<JobId> {
        let jobs: Vec<NewJob> = jobs.into_iter().map(Into::into).collect();
        let pushed = self.push(&jobs, None).await.expect("the push is taken");
        pushed.into_iter().map(stored).collect()
    }

    /// Pushes one job, which must be stored; returns its id.
    pub(crate) async fn store_one(&self, job: impl Into<NewJob>) -> JobId {
        self.store([job.into()]).await.remove(0)
    }

    /// Pushes one job; returns the result.
    pub(crate) async fn offer(&self, job: impl Into<NewJob>) -> Pushed {
        let pushed = self.push(&[job.into()], None).await;
        pushed.expect("the push is taken").remove(0)
    }

    /// Requests `max` jobs by a lease that outlives the case, without waiting.
    pub(crate) fn ask(&self, max: u32) -> ClaimRequest {
        self.ask_by(max, HELD)
    }

    /// Requests `max` jobs by a lease of that length, without waiting.
    pub(crate) fn ask_by(&self, max: u32, lease: Duration) -> ClaimRequest {
        let max = NonZeroU32::new(max).expect("a claim asks for one at least");
        ClaimRequest::new(self.worker.clone(), lease).max(max)
    }

    /// Claims up to `max` jobs by a lease that outlives the case.
    pub(crate) async fn take(&self, max: u32) -> Vec<Delivery> {
        self.take_all_round(self.ask(max)).await
    }

    /// Claims one job, which must be ready.
    pub(crate) async fn take_one(&self) -> Delivery {
        let mut taken = self.take(1).await;
        assert_eq!(taken.len(), 1, "one job is ready");
        taken.remove(0)
    }

    /// Claims up to `max` jobs by a lease that the case lets expire.
    pub(crate) async fn take_briefly(&self, max: u32) -> Vec<Delivery> {
        self.take_all_round(self.ask_by(max, BRIEF)).await
    }

    /// Claims one job, which must be ready, by a lease that the case lets expire.
    pub(crate) async fn take_one_briefly(&self) -> Delivery {
        let mut taken = self.take_briefly(1).await;
        assert_eq!(taken.len(), 1, "one job is ready");
        taken.remove(0)
    }

    /// Claims without waiting until it has as many jobs as requested, or none can be
    /// ready: after one empty claim, or after as many as the class allows (R9).
    async fn take_all_round(&self, mut ask: ClaimRequest) -> Vec<Delivery> {
        let (wanted, class) = (ask.max.get() as usize, self.class());
        let mut taken = Vec::new();
        let mut in_vain = 0;
        loop {
            taken.extend(self.claim(&ask).await.expect("the claim is answered"));
            let rest = u32::try_from(wanted.saturating_sub(taken.len()));
            let Some(rest) = rest.ok().and_then(NonZeroU32::new) else { return taken };
            // Most backends promise that one claim finds all ready jobs.
            if class.patience(u64::MAX) == 0
                || in_vain >= class.patience(self.figures().await.unfinished())
            {
                return taken;
            }
            ask = ask.max(rest);
            in_vain += 1;
        }
    }

    /// Claims up to `max` jobs and waits for them up to `wait`; time passes meanwhile.
    pub(crate) async fn take_within(&self, max: u32, wait: Duration) -> Vec<Delivery> {
        self.site.within(wait + WOKEN, self.take_waiting(max, wait)).await.0
    }

    /// Claims up to `max` jobs and waits for them up to `wait`. Another task may let
    /// time pass meanwhile.
    pub(crate) async fn take_waiting(&self, max: u32, wait: Duration) -> Vec<Delivery> {
        self.claim(&self.ask(max).wait(wait)).await.expect("the claim is answered")
    }

    /// Settles a job with `disposition`.
    pub(crate) async fn say(&self, of: &Delivery, disposition: Disposition) -> Settled {
        let settlement = relq_core::Settlement::new(of.receipt.clone(), disposition);
        let settled = self.settle(&[settlement]).await;
        settled.expect("the settlement is answered").remove(0)
    }

    /// Settles a job that this worker holds as done.
    pub(crate) async fn finish(&self, held: &Delivery) {
        assert_eq!(self.say(held, Disposition::Done).await, Settled::Applied);
    }

    /// Extends the lease of one job, as a worker does that holds no other.
    pub(crate) async fn keep(
        &self,
        held: &Delivery,
        lease: Duration,
    ) -> Result<Extended, Error> {
        let named = std::slice::from_ref(&held.receipt);
        Ok(self.extend(&self.worker, named, lease).await?.remove(0))
    }

    /// Recovers until there is no more; returns the sums of all pages.
    pub(crate) async fn recover_all(&self) -> Recovered {
        let page = NonZeroU32::new(1000).expect("not zero");
        let mut sum = Recovered::default();
        loop {
            let one = self.recover(page).await.expect("the recovery is answered");
            sum.requeued += one.requeued;
            sum.buried += one.buried;
            sum.promoted += one.promoted;
            sum.next_in = one.next_in;
            if !one.more {
                return sum;
            }
        }
    }

    pub(crate) async fn figures(&self) -> Stats {
        self.stats().await.expect("the stats are answered")
    }

    /// All jobs in a state, page by page of at most `limit`.
    pub(crate) async fn list(&self, state: JobState, limit: u32) -> Vec<JobView> {
        let limit = NonZeroU32::new(limit).expect("not zero");
        let mut ask = PeekRequest::new(state, limit);
        let mut jobs = Vec::new();
        loop {
            let page = self.peek(&ask).await.expect("the peek is answered");
            assert!(page.jobs.len() <= limit.get() as usize, "a page keeps its limit");
            jobs.extend(page.jobs);
            match page.next {
                Some(next) => ask = ask.after(next),
                None => return jobs,
            }
        }
    }

    /// The only dead job.
    pub(crate) async fn the_dead_one(&self) -> JobView {
        let mut dead = self.list(JobState::Dead, 10).await;
        assert_eq!(dead.len(), 1, "one job is dead");
        dead.remove(0)
    }

    async fn assert_audit_counts(&self, audited: u64) {
        let stats = self.figures().await;
        assert_eq!(audited, stats.unfinished() + stats.dead, "the audit saw every job");
    }
}

fn queue_named(name: &str) -> QueueName {
    QueueName::new(name).expect("cases use valid queue names")
}

fn worker(name: &str) -> WorkerId {
    WorkerId::new(name).expect("cases use valid worker ids")
}

fn stored(pushed: Pushed) -> JobId {
    match pushed {
        Pushed::Stored(id) => id,
        duplicate @ Pushed::Duplicate { .. } => panic!("not stored: {duplicate:?}"),
    }
}
