//! A Redis server behind the fault proxy, where each command waits.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use relq_core::{
    Queue, QueueName,
    environment::{Clock as _, Environment},
};

use super::{Connections, Held, SteppedStore};
use crate::{
    Subject,
    proxy::{
        Draws, Endpoint, Fault, FaultProxy, HeldCommand, StepRecord, VirtualClock, When,
    },
    server::Server,
};

/// A script that returns the consumer groups of all streams: their positions and their
/// pending entries, without times of the server's own clock. DEBUG DIGEST leaves them
/// out. KEYS returns the names in the order of a hash table, which the server rebuilds
/// in the background. So two runs with equal data may get different orders, and the
/// script sorts the names.
const STREAMS: &str = "-- the suite's own\n\
    local parts = {} \
    local function add(...) for _, part in ipairs({...}) do \
      parts[#parts + 1] = tostring(part) end end \
    local keys = redis.call('KEYS', '*') table.sort(keys) \
    for _, key in ipairs(keys) do \
      if redis.call('TYPE', key).ok == 'stream' then \
        for _, group in ipairs(redis.call('XINFO', 'GROUPS', key)) do \
          add(key, group[2], group[8]) \
          local pending = redis.call('XPENDING', key, group[2], '-', '+', 1000) \
          for _, one in ipairs(pending) do add(one[1], one[2], one[4]) end \
        end end end \
    return parts";

pub(super) struct RedisStore {
    subject: Arc<dyn Subject>,
    proxy: FaultProxy,
    clock: VirtualClock,
    endpoints: Mutex<BTreeMap<String, Endpoint>>,
}

impl RedisStore {
    /// Empties the server.
    pub(super) async fn empty(
        server: &Server,
        subject: &Arc<dyn Subject>,
    ) -> Result<Self, String> {
        let clock = VirtualClock::new();
        clock.hold_still_in_scripts();
        let proxy = FaultProxy::start_here(server.address(), clock.clone())
            .map_err(at_proxy)?;
        proxy.name_entries();
        subject.prepare(&proxy).await.map_err(at_proxy)?;
        proxy.tell(&["FLUSHALL"]).await.map_err(at_proxy)?;
        let (subject, endpoints) = (Arc::clone(subject), Mutex::default());
        Ok(Self { subject, proxy, clock, endpoints })
    }

    fn endpoints(&self) -> MutexGuard<'_, BTreeMap<String, Endpoint>> {
        self.endpoints.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn endpoint(&self, actor: &str) -> Endpoint {
        self.endpoints().get(actor).expect("it is connected").clone()
    }
}

#[async_trait]
impl SteppedStore for RedisStore {
    fn clock(&self) -> &VirtualClock {
        &self.clock
    }

    async fn connect(
        &self,
        actor: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, String> {
        let endpoint = self.proxy.actor(actor).map_err(at_proxy)?;
        let opened = self.subject.connect(endpoint.url(), queue, environment).await;
        self.endpoints().insert(actor.to_owned(), endpoint);
        opened.map_err(|error| error.full_message())
    }

    fn park(&self) {
        self.proxy.park();
        self.endpoints().values().for_each(Endpoint::forget_replies);
    }

    async fn parked(&self, count: usize) -> Vec<StepRecord> {
        self.proxy.parked(count).await
    }

    fn pass(&self, step: &StepRecord) -> Result<(), String> {
        self.proxy.pass(&step.actor, step.step);
        Ok(())
    }

    async fn kill(&self, step: &StepRecord) {
        self.close(&step.actor).await;
    }

    /// A digest of every byte that the actor was sent.
    fn seen(&self, actor: &str) -> u64 {
        self.endpoint(actor).replies(self.clock.elapsed())
    }

    async fn data(&self) -> Result<u64, String> {
        let mut hasher = DefaultHasher::new();
        for command in [&["DEBUG", "DIGEST"][..], &["EVAL", STREAMS, "0"]] {
            self.proxy.tell(command).await.map_err(at_proxy)?.hash(&mut hasher);
        }
        Ok(hasher.finish())
    }

    async fn heal(&self) -> Result<(), String> {
        self.proxy.heal().await.map_err(at_proxy)?;
        let unfired = self.proxy.unfired();
        if unfired.is_empty() {
            Ok(())
        } else {
            Err(format!("FAULT-FIRED: {unfired:?}"))
        }
    }

    fn connections(&self) -> Option<&dyn Connections> {
        Some(self)
    }

    fn check(&self) -> Result<(), String> {
        let troubles = self.proxy.troubles();
        if troubles.is_empty() {
            Ok(())
        } else {
            Err(format!("the proxy: {troubles:?}"))
        }
    }
}

#[async_trait]
impl Connections for RedisStore {
    async fn idle(&self) -> Result<(), String> {
        self.proxy.idle().await.map_err(at_proxy)?;
        // Replies that arrive between two decisions count as having arrived at the same
        // time.
        let now = self.clock.elapsed();
        for endpoint in self.endpoints().values() {
            endpoint.replies(now);
        }
        Ok(())
    }

    fn held(&self) -> Vec<Held> {
        let held = |HeldCommand { actor, command, arguments, .. }| Held {
            actor,
            command,
            arguments,
        };
        self.proxy.held().into_iter().map(held).collect()
    }

    async fn close(&self, actor: &str) {
        self.proxy.kill(&self.endpoint(actor)).await;
    }

    async fn freeze(&self, actor: &str) {
        self.proxy.freeze(&self.endpoint(actor)).await;
    }

    async fn delay(&self, step: &StepRecord) {
        self.proxy.inject(&step.actor, step.step, Fault::Ghost);
        self.endpoint(&step.actor).gone().await;
    }

    async fn arrive(&self) -> Result<(), String> {
        self.proxy.release_ghosts().await.map(drop).map_err(at_proxy)
    }

    async fn draws(&self, step: &StepRecord) -> Result<Vec<Draws>, String> {
        self.proxy.draws(&step.actor, step.step).await.map_err(at_proxy)
    }

    fn pass_drawing(&self, step: &StepRecord, draws: Draws) {
        self.proxy.pass_drawing(&step.actor, step.step, draws);
    }

    fn cut(&self, step: &StepRecord, when: When) {
        self.proxy.inject(&step.actor, step.step, Fault::Cut(when));
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it maps errors")]
fn at_proxy(error: io::Error) -> String {
    format!("the proxy: {error}")
}
