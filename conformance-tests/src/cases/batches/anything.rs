//! Runs random sequences of all batch operations, and compares the queue with a
//! reference that only keeps sets of pieces.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use relq_core::{
    Delivery, Disposition, NewJob,
    batch::{BatchId, BatchOutcome, BatchPriority, BatchState},
    environment::Randomness,
    outcome::{Extended, Settled},
};

use crate::{
    cases::batches::fixture::{COMPLETE, batch, limit, telling},
    cases::case,
    harness::{
        checks::{dead, drain, retry_now},
        environment::SeededRandomness,
        store::{Actor, HELD, Store},
    },
};

/// The maximum number of batches in one sequence, the number of operations in a
/// sequence, and the number of sequences.
const BATCHES: usize = 5;
const OPERATIONS: usize = 200;
const SEQUENCES: u64 = 6;

/// The expected state of a batch.
#[derive(Debug)]
struct Expected {
    state: BatchState,
    limit: Option<usize>,
    level: u8,
    waiting: BTreeSet<Bytes>,
    leased: BTreeSet<Bytes>,
    total: u64,
    done: u64,
    failed: u64,
    dropped: u64,
}

impl Expected {
    fn gives(&self) -> bool {
        matches!(self.state, BatchState::Open | BatchState::Sealed)
    }

    fn free(&self) -> usize {
        let used = self.leased.len();
        let free = self.limit.map_or(usize::MAX, |most| most.saturating_sub(used));
        if self.gives() { free.min(self.waiting.len()) } else { 0 }
    }

    /// A leased piece becomes ready again, unless the batch was cancelled.
    fn take_back(&mut self, piece: &Bytes) {
        self.leased.remove(piece);
        if self.gives() {
            self.waiting.insert(piece.clone());
        } else {
            self.dropped += 1;
        }
    }

    /// A leased piece is settled.
    fn end(&mut self, piece: &Bytes, disposition: &Disposition) {
        let ended = match disposition {
            Disposition::Retry { .. } | Disposition::GiveBack => {
                return self.take_back(piece);
            }
            Disposition::Done => &mut self.done,
            Disposition::Dead { .. } => &mut self.failed,
            Disposition::Discard => &mut self.dropped,
        };
        *ended += 1;
        self.leased.remove(piece);
    }

    /// Whether the batch completes now.
    fn completes(&mut self) -> bool {
        let may_end = matches!(self.state, BatchState::Sealed | BatchState::Cancelling);
        if !may_end || self.waiting.len() + self.leased.len() > 0 {
            return false;
        }
        self.state = BatchState::Completed(match self.state {
            BatchState::Cancelling => BatchOutcome::Cancelled,
            _ if self.failed > 0 => BatchOutcome::Failed,
            _ => BatchOutcome::Done,
        });
        true
    }
}

/// Converts a number that is known to be small.
fn small<T: TryFrom<usize>>(number: usize) -> T {
    T::try_from(number).ok().expect("a small number")
}

/// One running sequence.
struct Sequence {
    random: SeededRandomness,
    actors: Vec<Actor>,
    batches: BTreeMap<BatchId, Expected>,
    /// The leased jobs, each with the index of the actor that holds it.
    held: Vec<(usize, Delivery)>,
    ended: Vec<Delivery>,
    /// The number of completion jobs that are ready, and the number that were claimed.
    completed: (usize, usize),
}

case!(anything_goes_by_the_rules: B2 B3 B4 B5 B7 => Batches);
/// After any operations in any order, each batch has the state that
/// the reference expects, gives out the expected pieces, and completes once.
async fn anything_goes_by_the_rules(store: &Store) {
    for seed in 1..=SEQUENCES {
        let mut actors = Vec::new();
        for name in ["w1", "w2", "w3"] {
            actors.push(store.actor(&format!("{name}-{seed}")).await);
        }
        let random = SeededRandomness::new(seed);
        let (batches, held) = (BTreeMap::new(), Vec::new());
        let ended = Vec::new();
        let mut runner =
            Sequence { random, actors, batches, held, ended, completed: (0, 0) };
        for operation in 0..OPERATIONS {
            runner.go_on(seed).await;
            runner.judge(&format!("sequence {seed}, operation {operation}")).await;
        }
        runner.end(seed).await;
        runner.actors[0].purge().await.expect("answered");
    }
}

impl Sequence {
    fn draw(&self, below: usize) -> usize {
        let mut bytes = [0; 4];
        self.random.fill(&mut bytes);
        u32::from_le_bytes(bytes) as usize % below.max(1)
    }

    fn any_batch(&self) -> Option<BatchId> {
        self.batches.keys().nth(self.draw(self.batches.len())).cloned()
    }

    async fn go_on(&mut self, seed: u64) {
        match self.draw(20) {
            0..=1 => self.make(seed).await,
            2..=5 => self.add().await,
            6 => self.seal().await,
            7..=11 => self.claim().await,
            12..=16 => self.settle().await,
            17 => self.settle_again().await,
            18 => self.release_worker().await,
            _ if self.draw(3) == 0 => self.cancel().await,
            _ => self.beat().await,
        }
        for batch in self.batches.values_mut() {
            self.completed.0 += usize::from(batch.completes());
        }
    }

    async fn make(&mut self, seed: u64) {
        let number = self.batches.len();
        if number == BATCHES {
            return;
        }
        let most = self.draw(4);
        // No two batches have the same priority, so there is exactly one right order.
        let level = small(self.draw(20) * BATCHES + number);
        let id = format!("b{seed}-{number}");
        let priority = BatchPriority::new(level).expect("a valid level");
        let new = telling(&id).priority(priority);
        let new = if most == 0 { new } else { new.limit(limit(small(most))) };
        self.actors[0].make(&new).await;
        let expected = Expected {
            state: BatchState::Open,
            limit: (most > 0).then_some(most),
            level,
            waiting: BTreeSet::new(),
            leased: BTreeSet::new(),
            total: 0,
            done: 0,
            failed: 0,
            dropped: 0,
        };
        self.batches.insert(batch(&id), expected);
    }

    async fn add(&mut self) {
        let Some(id) = self.any_batch() else { return };
        let count = 1 + self.draw(4);
        let known = self.batches.get_mut(&id).expect("a known batch");
        if known.state != BatchState::Open {
            return;
        }
        let first = known.total;
        let pieces =
            (0..count as u64).map(|at| Bytes::from(format!("{id}/{}", first + at)));
        let pieces: Vec<_> = pieces.collect();
        known.total += count as u64;
        known.waiting.extend(pieces.iter().cloned());
        self.actors[0].fill(&id, pieces.into_iter().map(NewJob::new)).await;
    }

    async fn seal(&mut self) {
        let Some(id) = self.any_batch() else { return };
        let known = self.batches.get_mut(&id).expect("a known batch");
        if known.state == BatchState::Open {
            known.state = BatchState::Sealed;
        }
        self.actors[0].close(&id).await;
    }

    async fn cancel(&mut self) {
        let Some(id) = self.any_batch() else { return };
        let known = self.batches.get_mut(&id).expect("a known batch");
        if known.gives() {
            known.state = BatchState::Cancelling;
            known.dropped += known.waiting.len() as u64;
            known.waiting.clear();
        }
        self.actors[0].call_off(&id).await;
    }

    /// B3, B4: the pieces that a claim of `most` jobs must take, counted by batch.
    fn due(&self, most: usize) -> BTreeMap<Option<BatchId>, usize> {
        let mut due = BTreeMap::new();
        let completed = most.min(self.completed.0);
        due.insert(None, completed);
        let mut rest = most - completed;
        let mut ranked: Vec<_> = self.batches.iter().collect();
        ranked.sort_by_key(|(_, known)| std::cmp::Reverse(known.level));
        for (id, known) in ranked {
            let taken = known.free().min(rest);
            due.insert(Some(id.clone()), taken);
            rest -= taken;
        }
        due.retain(|_, count| *count > 0);
        due
    }

    async fn claim(&mut self) {
        let (who, most) = (self.draw(self.actors.len()), 1 + self.draw(5));
        let due = self.due(most);
        // A retried piece becomes ready only when a call promotes it.
        self.actors[who].recover_all().await;
        let taken = self.actors[who].take(small(most)).await;
        let mut got = BTreeMap::new();
        for one in &taken {
            *got.entry(one.batch.clone()).or_insert(0) += 1;
            self.lease(one);
        }
        assert_eq!(got, due, "B3, B4: a claim of {most}");
        self.held.extend(taken.into_iter().map(|one| (who, one)));
    }

    fn lease(&mut self, one: &Delivery) {
        let Some(id) = &one.batch else {
            assert_eq!(one.payload, COMPLETE);
            self.completed = (self.completed.0 - 1, self.completed.1 + 1);
            return;
        };
        let known = self.batches.get_mut(id).expect("a known batch");
        assert!(known.waiting.remove(&one.payload), "{one:?} does not wait");
        known.leased.insert(one.payload.clone());
    }

    async fn settle(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let (who, one) = self.held.swap_remove(self.draw(self.held.len()));
        let dispositions = [
            Disposition::Done,
            Disposition::Discard,
            dead("no"),
            retry_now(),
            Disposition::GiveBack,
        ];
        let disposition = match &one.batch {
            None => Disposition::Done,
            Some(_) => dispositions[self.draw(8) % 5].clone(),
        };
        let said = self.actors[who].say(&one, disposition.clone()).await;
        assert_eq!(said, Settled::Applied);
        let known = one.batch.as_ref().and_then(|id| self.batches.get_mut(id));
        if let Some(known) = known {
            known.end(&one.payload, &disposition);
        }
        self.ended.push(one);
    }

    /// B2: settling a settled piece again has no effect.
    async fn settle_again(&mut self) {
        if self.ended.is_empty() {
            return;
        }
        let one = &self.ended[self.draw(self.ended.len())];
        let who = self.draw(self.actors.len());
        let said = self.actors[who].say(one, Disposition::Done).await;
        assert_eq!(said, Settled::LeaseLost);
    }

    async fn release_worker(&mut self) {
        let who = self.draw(self.actors.len());
        let actor = self.actors[who].clone();
        let (gone, kept): (Vec<_>, Vec<_>) =
            self.held.drain(..).partition(|(holder, _)| *holder == who);
        self.held = kept;
        actor.release_worker(actor.worker()).await.expect("answered");
        for (_, one) in gone {
            match one.batch.as_ref().and_then(|id| self.batches.get_mut(id)) {
                Some(known) => known.take_back(&one.payload),
                None => self.completed = (self.completed.0 + 1, self.completed.1 - 1),
            }
            self.ended.push(one);
        }
    }

    /// B7: a heartbeat drops pieces of cancelled batches and keeps all other leases.
    async fn beat(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let at = self.draw(self.held.len());
        let (who, one) = &self.held[at];
        // A heartbeat names all jobs that its worker holds.
        let mine: Vec<_> =
            self.held.iter().filter(|(holder, _)| holder == who).collect();
        let receipts: Vec<_> =
            mine.iter().map(|(_, one)| one.receipt.clone()).collect();
        let actor = &self.actors[*who];
        let said =
            actor.extend(actor.worker(), &receipts, HELD).await.expect("answered");
        assert_eq!(said.len(), receipts.len(), "{one:?}");
        let mut gone = BTreeSet::new();
        for ((_, one), said) in mine.into_iter().zip(said) {
            let known = one.batch.as_ref().and_then(|id| self.batches.get_mut(id));
            match known {
                Some(known) if !known.gives() => {
                    assert_eq!(said, Extended::Cancelled);
                    known.take_back(&one.payload);
                    gone.insert(one.receipt.token().clone());
                }
                _ => assert!(matches!(said, Extended::Until(_)), "{said:?}"),
            }
        }
        let is_gone = |one: &Delivery| gone.contains(one.receipt.token());
        let (gone, kept): (Vec<_>, Vec<_>) =
            self.held.drain(..).partition(|(_, one)| is_gone(one));
        self.held = kept;
        self.ended.extend(gone.into_iter().map(|(_, one)| one));
    }

    async fn judge(&self, place: &str) {
        for (id, known) in &self.batches {
            let status = self.actors[0].status(id).await;
            let got = (status.total, status.done, status.failed, status.dropped);
            let wanted = (known.total, known.done, known.failed, known.dropped);
            assert_eq!(got, wanted, "B2, {place}: {status:?}");
            let got = (status.state, status.waiting, status.leased);
            let live = (known.waiting.len() as u64, known.leased.len() as u64);
            assert_eq!(got, (known.state, live.0, live.1), "{place}: {status:?}");
        }
    }

    /// Works off all jobs, and checks that each batch has reported its completion once.
    async fn end(&mut self, seed: u64) {
        for id in self.batches.keys() {
            self.actors[0].close(id).await;
        }
        for actor in &self.actors {
            actor.release_worker(actor.worker()).await.expect("answered");
        }
        drain(&self.actors[0]).await;
        let mut pieces = 0;
        for id in self.batches.keys() {
            let status = self.actors[0].status(id).await;
            assert!(status.state.is_completed(), "sequence {seed}: {status:?}");
            pieces += status.done;
        }
        let completed = self.batches.len() as u64;
        let finished = self.actors[0].figures().await.finished;
        assert_eq!(finished, pieces + completed, "B5, sequence {seed}: once each");
    }
}
