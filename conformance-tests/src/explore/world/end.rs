//! The end of a run: all leases and delays end, and the queue is recovered and drained.

use std::str::FromStr as _;

use super::World;
use crate::{
    explore::history::{History, Recorded},
    spec::{
        caller::Pushes,
        operation::Operation,
        recorded::{Look, RecordedCall, Reply},
    },
};

/// How many times the end of a run lets all leases and delays end and drains the queue.
/// A scene with batches needs one more, for the jobs that their completions push.
const ROUNDS: usize = 2;

/// A number that is larger than the number of jobs in any scene.
const MOST_JOBS: u64 = 16;

impl World {
    /// Ends the scene: lets all leases and delays end, recovers and drains. Returns all
    /// calls of the run.
    pub(in super::super) async fn end(mut self) -> Result<History, String> {
        let rounds = ROUNDS + usize::from(!self.batches.is_empty());
        self.end_actors().await;
        self.store.heal().await?;
        self.look().await;
        self.call("- resume").await;
        for number in self.batches.clone() {
            self.call(&format!("- seal {number}")).await;
        }
        for _ in 0..rounds {
            self.call("- advance 4").await;
            self.recover().await;
            self.drain().await;
        }
        self.look().await;
        self.store.check()?;
        Ok(std::mem::take(&mut self.shared.state().history))
    }

    /// Ends the actors, whose programs have ended. On a server the notifiers of their
    /// claims would otherwise react to the calls that follow, at any moment.
    async fn end_actors(&mut self) {
        let Some(connections) = self.store.connections() else { return };
        for actor in self.actors.values_mut() {
            connections.close(&actor.name).await;
            if let Some(task) = actor.task.take() {
                task.abort();
            }
        }
    }

    async fn recover(&mut self) {
        loop {
            let replies = self.call("- recover 100").await;
            let more = replies.iter().any(
                |reply| matches!(reply, Reply::Recovered(Ok(answer)) if answer.more),
            );
            if !more {
                return;
            }
        }
    }

    /// Claims and settles until no job is left. If a claim of this backend may leave
    /// ready jobs behind, it claims again after a claim without a job.
    async fn drain(&mut self) {
        let patience = self.witness.class.patience(MOST_JOBS);
        let mut in_vain = 0;
        while in_vain <= patience {
            let replies = self.call("- claim 100 l0").await;
            let taken = match replies.first() {
                Some(Reply::Claimed(Ok(deliveries))) => deliveries.len(),
                _ => 0,
            };
            if taken == 0 {
                in_vain += 1;
                continue;
            }
            let words: Vec<_> = (0..taken).map(|back| format!("{back}D")).collect();
            self.call(&format!("- settle {}", words.join(","))).await;
        }
    }

    async fn look(&mut self) {
        let look = Look::at(&*self.witness.queue, &self.batches).await;
        self.shared.state().history.after.push(Recorded::Look(look));
    }

    async fn call(&mut self, line: &str) -> Vec<Reply> {
        let operation = Operation::from_str(line).expect("a line of the language");
        let replies = match operation.time() {
            Some(time) => {
                self.store.clock().advance(time);
                Vec::new()
            }
            None => {
                let mut pushes = Pushes::default();
                self.witness.act(&operation, 0, &mut pushes).await
            }
        };
        let call = RecordedCall::alone(operation, 0, replies.clone());
        self.shared.state().history.after.push(Recorded::Call(call));
        replies
    }
}
