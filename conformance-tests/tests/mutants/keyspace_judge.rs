//! Runs a check on a mutant of the keyspace backend: one test case, the calls of one
//! scenario with injected faults, or a check that only this pattern needs.

use std::{future::Future, io, num::NonZeroU32, pin::Pin, sync::Arc, time::Duration};

use relq_conformance::{
    Profile, Room, Subject, async_trait, judge_case,
    own::Keyspace,
    proxy::{FaultProxy, VirtualClock},
    server::Server,
    sweep,
};
use relq_core::{
    ClaimRequest, Error, Queue, QueueName, ReliableQueue, ReliableQueueExt, WorkerId,
    environment::{Environment, OsRandomness},
    outcome::{Extended, Settled},
};
use relq_keyspace::{KeyspaceConfig, KeyspaceQueue};

use crate::{judge::PatchesFitted, mutant::Patch};

const LEASE: Duration = Duration::from_secs(3600);
const PAGE: NonZeroU32 = NonZeroU32::new(100).expect("not zero");

/// The keyspace backend with these patches, as a subject of the suite.
struct Mutated {
    patches: &'static [Patch],
    fitted: PatchesFitted,
    healthy: Keyspace,
}

impl Mutated {
    fn new(patches: &'static [Patch]) -> Self {
        let (fitted, healthy) = (PatchesFitted::default(), Keyspace::default());
        Self { patches, fitted, healthy }
    }

    async fn open(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<KeyspaceQueue>, Error> {
        let config = KeyspaceConfig::new(endpoint).expect("the suite gives a URL");
        let config = config.environment(environment.clone());
        let opened = KeyspaceQueue::connect(config, queue.clone()).await?;
        Ok(Arc::new(opened))
    }
}

#[async_trait]
impl Subject for Mutated {
    async fn prepare(&self, proxy: &FaultProxy) -> io::Result<()> {
        self.fitted.patch(proxy, self.patches);
        Ok(())
    }

    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        Ok(self.open(endpoint, queue, environment).await?)
    }

    fn plain_push(&self, queue: &QueueName, payload: &[u8]) -> Vec<Vec<u8>> {
        self.healthy.plain_push(queue, payload)
    }

    fn plain_pushes_wake(&self) -> bool {
        self.healthy.plain_pushes_wake()
    }

    fn room(&self) -> Room {
        self.healthy.room()
    }

    fn owns(&self, queue: &QueueName, key: &[u8]) -> bool {
        self.healthy.owns(queue, key)
    }
}

/// Runs a case with these patches. Fails with the case's message if the case fails.
pub(crate) fn judge(patches: &'static [Patch], case: &str) -> Result<(), String> {
    let mutated = Mutated::new(patches);
    let fitted = mutated.fitted.clone();
    let judged = judge_case(mutated, Profile::Redis, case);
    judged.inspect_err(|words| assert!(fitted.fit(), "patches that fit: {words}"))
}

/// Runs the scenario of that name with these patches, and with every fault at every
/// step. Returns the failures.
pub(crate) fn inject(patches: &'static [Patch], act: &str) -> Vec<String> {
    let mutated = Mutated::new(patches);
    let fitted = mutated.fitted.clone();
    let failures = sweep::failures(mutated, act);
    assert!(failures.is_empty() || fitted.fit(), "patches that fit: {failures:?}");
    failures
}

/// A check that only this pattern needs. If it fails, it returns a message as the
/// error.
type OwnCheck =
    fn(&MutantFixture) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + '_>>;

/// Runs a check that only the keyspace pattern needs, on the backend with these
/// patches. If the check fails, returns its message as the error.
pub(crate) fn judge_by(
    patches: &'static [Patch],
    check: OwnCheck,
) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.expect("the system gives a runtime").block_on(async {
        let fixture = MutantFixture::new(patches).await;
        let checked = check(&fixture).await;
        let fitted = &fixture.subject.fitted;
        checked.inspect_err(|words| assert!(fitted.fit(), "patches that fit: {words}"))
    })
}

/// A Redis server for one mutant, and a fault proxy in front of it.
pub(crate) struct MutantFixture {
    subject: Mutated,
    proxy: FaultProxy,
    clock: VirtualClock,
    _server: Server,
}

impl MutantFixture {
    async fn new(patches: &'static [Patch]) -> Self {
        let (server, clock) = (Server::start(), VirtualClock::new());
        let proxy = FaultProxy::start(server.address(), clock.clone())
            .expect("the proxy starts");
        let subject = Mutated::new(patches);
        subject.prepare(&proxy).await.expect("the proxy can be prepared");
        Self { subject, proxy, clock, _server: server }
    }

    async fn queue(&self, actor: &str) -> Arc<KeyspaceQueue> {
        let endpoint = self.proxy.actor(actor).expect("a socket");
        let clock = Arc::new(self.clock.clone());
        let environment = Environment::new(clock, Arc::new(OsRandomness));
        let name = QueueName::new("jobs").expect("the name is valid");
        let opened = self.subject.open(endpoint.url(), &name, &environment).await;
        opened.expect("an actor connects")
    }

    /// Sets a key without relq, as a producer that knows only Redis does.
    async fn set(&self, key: &str, value: &str) {
        let set = self.proxy.tell(&["SET", key, value]).await;
        set.expect("the server takes it");
    }

    /// The proxy holds back every step. Lets steps run until the next one is a call of
    /// `script` by `actor`, and returns the number of that step.
    async fn pass_until(&self, actor: &str, script: &str) -> u32 {
        loop {
            let step = self.proxy.parked(1).await.remove(0);
            if step.actor == actor && step.label().contains(script) {
                return step.step;
            }
            self.proxy.pass(&step.actor, step.step);
        }
    }
}

fn ask() -> ClaimRequest {
    ClaimRequest::new(WorkerId::new("w").expect("a valid id"), LEASE).max(PAGE)
}

/// R9: a client sets the name of a leased job again. Then the lease expires, and both
/// jobs of that name are delivered.
pub(crate) async fn a_name_is_set_again_while_leased(
    fixture: &MutantFixture,
) -> Result<(), String> {
    let queue = fixture.queue("worker").await;
    fixture.set("item_5", "old").await;
    let held = queue.claim(&ask()).await.expect("answered");
    fixture.set("item_5", "new").await;
    fixture.clock.advance(LEASE + Duration::from_millis(1));
    queue.recover(PAGE).await.expect("answered");

    let mut found = queue.claim(&ask()).await.expect("answered");

    found.sort_by(|one, other| one.payload.cmp(&other.payload));
    let found: Vec<_> = found.iter().map(|one| &one.payload[..]).collect();
    if held.len() == 1 && found == [b"new", b"old"] {
        return Ok(());
    }
    Err(format!("LOST: two jobs of one name, and found are {found:?}"))
}

/// R6, R12: a reaper reads that a lease has expired, but the worker extends the lease
/// before the reaper can end it. The reaper must leave the lease.
pub(crate) async fn a_lease_is_extended_behind_a_reapers_look(
    fixture: &MutantFixture,
) -> Result<(), String> {
    let (worker, reaper) =
        (fixture.queue("worker").await, fixture.queue("reaper").await);
    worker.push_one("job".into()).await.expect("taken");
    let held = worker.claim(&ask()).await.expect("answered").remove(0);
    fixture.clock.advance(LEASE + Duration::from_millis(1));
    fixture.proxy.park();
    let reaping = tokio::spawn(async move { reaper.recover(PAGE).await });
    let acts = fixture.pass_until("reaper", "recover").await;

    let receipts = [held.receipt.clone()];
    let ask = ask();
    let extending = worker.extend(&ask.worker, &receipts, LEASE);
    let passing = async {
        let parked = fixture.proxy.parked(2).await;
        let worker = parked.iter().find(|step| step.actor == "worker");
        fixture.proxy.pass("worker", worker.expect("the worker's step").step)
    };
    let (extended, _) = tokio::join!(extending, passing);
    fixture.proxy.pass("reaper", acts);
    reaping.await.expect("the reaper ends").expect("answered");
    fixture.proxy.heal().await.expect("the proxy heals");

    if !matches!(extended.expect("answered")[..], [Extended::Until(_)]) {
        return Err("the lease was not extended, so nothing was judged".to_owned());
    }
    match worker.ack(&held.receipt).await.expect("answered") {
        Settled::Applied => Ok(()),
        Settled::LeaseLost => Err("NO-STEAL-LIVE: it was taken back".to_owned()),
    }
}
