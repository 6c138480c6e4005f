//! The reference model as the judge of recorded calls.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bytes::Bytes;
use relq_core::{JobId, Queue, QueueName, capabilities::Capabilities};

use super::{Look, RecordedCall, queue::Replies};
use crate::spec::{
    drained::FoundAt, pushing::ms, reference::CheckResult, runner::Runner,
};

/// A reference model that judges recorded calls.
pub(crate) struct Judge {
    runner: Runner,
    replies: Arc<Replies>,
}

impl Judge {
    /// A judge that begins with an empty queue.
    pub(crate) fn new(can: &Capabilities) -> Self {
        let replies = Arc::new(Replies::of(can));
        let queue = QueueName::new("recorded").expect("a valid name");
        let repeating: Arc<dyn Queue> = Arc::clone(&replies) as _;
        let runner = Runner::of_recorded(queue, &repeating);
        Self { runner, replies }
    }

    /// Makes `cancel` and `redrive-one` count back from the newest job so far, also after
    /// later pushes.
    pub(crate) fn fix_jobs(&mut self) {
        self.runner.fixed_jobs = Some(self.runner.reference.jobs.len());
    }

    /// Judges a call as if no other call ran at the same time.
    pub(crate) async fn call(&mut self, call: &RecordedCall) -> CheckResult {
        self.replies.put(call.replies.iter().cloned());
        self.runner.payloads = call.payloads;
        self.runner.actors.next_is_lost = call.is_lost;
        self.runner.actors.next_is_hit = call.is_hit;
        if let Some(from) = call.empty_from(&self.replies.can)
            && Duration::from_millis(self.runner.reference.now) < from
        {
            return Err(
                "R6: a claim found nothing before the end of its wait".to_owned()
            );
        }
        self.runner.reference.call_began = call.began_at.map(ms);
        self.runner.act(&call.operation).await?;
        self.runner.reference.call_began = None;
        self.runner.actors.next_is_lost = false;
        self.runner.actors.next_is_hit = false;
        self.runner.reference.conclude()?;
        self.replies.is_empty()
    }

    /// Returns, for each job, the states in which a drain of the queue may find it after
    /// `horizon`: see `Reference::drained`.
    pub(crate) fn drained(&self, horizon: Duration) -> Vec<(Bytes, BTreeSet<FoundAt>)> {
        self.runner.reference.drained(ms(horizon))
    }

    /// Returns, for each schedule, the states in which it may be, as text. `None` stands
    /// for no schedule.
    pub(crate) fn schedules(&self) -> Vec<Vec<Option<String>>> {
        self.runner.reference.schedules_told()
    }

    /// Returns, for each job, the results that it may have after a drain, as text: see
    /// `Reference::told_when_drained`.
    pub(crate) fn told(&self, horizon: Duration) -> Vec<Vec<Option<String>>> {
        self.runner.reference.told_when_drained(ms(horizon))
    }

    /// The ids of all jobs that are known.
    pub(crate) fn known_ids(&self) -> Vec<JobId> {
        self.runner.reference.known_ids()
    }

    /// Judges the stats and the audit, which were read while no call was running.
    pub(crate) async fn look(&mut self, look: Look) -> CheckResult {
        self.replies.put(look.replies);
        self.replies.statuses().extend(look.statuses);
        let judged = self.runner.look().await;
        self.replies.statuses().clear();
        judged
    }

    /// Returns a text that is equal to that of another judge if both judge every later
    /// call alike.
    pub(crate) fn fingerprint(&self) -> String {
        self.runner.fingerprint()
    }

    /// Checks that no job was delivered more often than a valid reason explains (R6),
    /// and that all batches have ended.
    pub(crate) fn end(&self) -> CheckResult {
        self.runner.reference.batches_have_ended()?;
        self.runner.reference.duplicates_are_bounded()
    }
}
