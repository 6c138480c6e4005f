//! Claim: makes due jobs ready, buries expired ones, and leases the next ready jobs. A
//! claim of many jobs takes several steps (R21).

use std::{mem, num::NonZeroU16, time::Duration};

use relq_core::{
    ClaimRequest, Delivery, Headers, JobId, Priority, Receipt, ReliableQueue as _,
    batch::BatchId, capabilities::ClaimBytes, environment::Timestamp,
    error::InvalidName,
};

use crate::batch::maintenance;
use crate::call::{Call, Pending, background_call};
use crate::failure::Failure;
use crate::give_back::GiveBack;
use crate::headers;
use crate::lease::{NONCE_BYTES, token};
use crate::queue::SqliteQueue;
use crate::statements::{EXPIRED, NewLease, ReadyRow};
use crate::store::Store;

/// One step of a claim, which does not wait for new jobs. The caller has already
/// validated the request.
pub(crate) struct Claim {
    pub(crate) ask: ClaimRequest,
    /// The maximum number of jobs to lease in this step.
    pub(crate) most: usize,
    /// The bytes of the jobs that the earlier steps have leased.
    pub(crate) bytes: ClaimBytes,
}

/// The result of one step of a claim, or of several.
pub(crate) struct Claimed {
    pub(crate) deliveries: Vec<Delivery>,
    /// Whether there may be more jobs that this call did not reach.
    pub(crate) more: bool,
    /// The bytes of the jobs of this step and of the earlier ones.
    pub(crate) bytes: ClaimBytes,
    /// The state of the file. If the claim found no job, it waits until this state
    /// changes.
    pub(crate) pulse: Pulse,
}

/// The part of the file's state that tells a waiting claim when to look again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pulse {
    /// SQLite's `data_version`, which changes when another connection writes the file.
    pub(crate) version: i64,
    /// When the next scheduled job is due; `None` if there is none or the queue is
    /// paused. For a held follower it is later than the end of any wait.
    pub(crate) due: Option<Timestamp>,
}

impl Call for Claim {
    type Answer = Claimed;

    const LOOKS_FIRST: bool = true;

    fn weight(&self) -> usize {
        self.most
    }

    fn look(&self, store: &Store<'_>) -> Result<Option<Claimed>, Failure> {
        let version = store.data_version()?;
        let look = store.look_for_work()?;
        let is_due = look.due.is_some_and(|due| due <= store.now_ms());
        if !look.is_paused && (look.has_ready || is_due) {
            return Ok(None);
        }
        let due = look.due.filter(|_| !look.is_paused).map(Timestamp::from_unix_ms);
        let (pulse, bytes) = (Pulse { version, due }, self.bytes.clone());
        Ok(Some(Claimed { deliveries: Vec::new(), more: false, bytes, pulse }))
    }

    fn run(&self, store: &Store<'_>) -> Result<Claimed, Failure> {
        if let Some(nothing) = self.look(store)? {
            return Ok(nothing);
        }
        let promoted = store.promote_due(store.page)?;
        let mut round = ClaimRound::begin(self, store);
        let mut more = round.fill()?;
        if round.buried > 0 {
            maintenance::after_pieces_ended(store)?;
        }
        let (deliveries, bytes) = (round.deliveries, round.bytes);
        let mut pulse = Pulse { version: store.data_version()?, due: None };
        if deliveries.is_empty() {
            // No job was leased. Perhaps all jobs that were promoted are pieces whose
            // batch has no free slot. After a full page of promotions, more due jobs
            // may follow.
            more |= u32::try_from(promoted) == Ok(store.page);
            let (_, due) = store.next_ends()?;
            pulse.due = due.map(Timestamp::from_unix_ms);
        }
        Ok(Claimed { deliveries, more, bytes, pulse })
    }

    /// If the caller stopped waiting before it received the jobs, returns a call that
    /// gives them back at once. Otherwise they would wait until their leases expire
    /// (R22).
    fn unheard(answer: Claimed) -> Option<Box<dyn Pending>> {
        let receipts: Vec<_> =
            answer.deliveries.into_iter().map(|delivery| delivery.receipt).collect();
        if receipts.is_empty() {
            None
        } else {
            Some(background_call(GiveBack { receipts }))
        }
    }
}

/// A claim while it runs: the jobs that it has leased and buried so far.
struct ClaimRound<'a> {
    claim: &'a Claim,
    store: &'a Store<'a>,
    /// Random bytes, generated once for each claim. A lease's token is these bytes and
    /// the job's key (R7).
    nonce: [u8; NONCE_BYTES],
    deliveries: Vec<Delivery>,
    buried: usize,
    bytes: ClaimBytes,
    /// True once no ready job without a batch is left. From then on the claim reads
    /// only pieces of batches.
    only_pieces: bool,
}

impl<'a> ClaimRound<'a> {
    fn begin(claim: &'a Claim, store: &'a Store<'a>) -> Self {
        let mut nonce = [0; NONCE_BYTES];
        store.random.fill(&mut nonce);
        Self {
            claim,
            store,
            nonce,
            deliveries: Vec::new(),
            buried: 0,
            bytes: claim.bytes.clone(),
            only_pieces: false,
        }
    }

    /// Leases jobs until the step has enough, or no more are ready. Returns whether a
    /// limit stopped it while more jobs may be ready.
    fn fill(&mut self) -> Result<bool, Failure> {
        while self.deliveries.len() < self.claim.most {
            let missing = self.claim.most - self.deliveries.len();
            let rows = self.next_rows(missing)?;
            if rows.is_empty() {
                return Ok(self.bytes.is_full());
            }
            let leases = rows.into_iter().map(|row| self.take(row).transpose());
            let leases: Vec<_> = leases.flatten().collect::<Result<_, _>>()?;
            self.store.lease(&leases, self.claim.ask.worker.as_str())?;
            if self.buried >= self.store.page as usize || self.bytes.is_full() {
                return Ok(true);
            }
        }
        Ok(true)
    }

    /// Reads the next jobs to lease: first jobs without a batch, then pieces of the
    /// next batch (B4).
    fn next_rows(&mut self, most: usize) -> Result<Vec<ReadyRow>, Failure> {
        if !self.only_pieces {
            let rows = self.store.next_ready(most, |row| self.bytes.take(size(row)))?;
            if !rows.is_empty() || self.bytes.is_full() {
                return Ok(rows);
            }
            self.only_pieces = true;
        }
        self.store.next_pieces(most, |row| self.bytes.take(size(row)))
    }

    /// Decides on the lease of a job. Buries the job instead, and returns `None`, if it
    /// has expired or cannot be read.
    fn take(&mut self, row: ReadyRow) -> Result<Option<NewLease>, Failure> {
        let job = row.job;
        if row.expires_at.is_some_and(|at| at <= self.store.now_ms()) {
            return self.bury(job, EXPIRED);
        }
        let token = token(&self.nonce, job);
        match deliver(row, &token, self.claim.ask.lease) {
            Ok(delivery) => {
                let until = self.store.ms_after(delivery.lease);
                self.deliveries.push(delivery);
                Ok(Some(NewLease { job, token, until }))
            }
            Err(reason) => self.bury(job, &reason),
        }
    }

    fn bury(&mut self, job: i64, reason: &str) -> Result<Option<NewLease>, Failure> {
        self.buried += 1;
        self.store.bury(job, reason, None)?;
        Ok(None)
    }
}

impl SqliteQueue {
    /// The first step of a claim.
    pub(crate) fn claim_call(&self, ask: &ClaimRequest) -> Claim {
        let most = self.most_to_claim(ask).min(self.max_jobs_per_step());
        Claim { ask: ask.clone(), most, bytes: ClaimBytes::default() }
    }

    /// Takes the further steps of a claim, until it has enough jobs or no more are ready.
    /// `first` is its first step. If a later step fails, the claim ends with the jobs that
    /// it has.
    pub(crate) async fn claim_rest(
        &self,
        ask: &ClaimRequest,
        first: Claimed,
    ) -> Result<Claimed, Failure> {
        let Claimed { deliveries, mut more, mut bytes, mut pulse } = first;
        let mut leased = Leased { queue: self, deliveries };
        while more
            && let Some(next) = self.next_step(ask, &leased.deliveries, bytes.clone())
        {
            match self.db_thread().call(next).await {
                Ok(step) => {
                    leased.deliveries.extend(step.deliveries);
                    (more, bytes, pulse) = (step.more, step.bytes, step.pulse);
                }
                Err(failure) if leased.deliveries.is_empty() => return Err(failure),
                Err(failure) => {
                    tracing::debug!(?failure, "a claim ends with the jobs that it has");
                    break;
                }
            }
        }
        let deliveries = mem::take(&mut leased.deliveries);
        Ok(Claimed { deliveries, more, bytes, pulse })
    }

    /// The step of a claim that follows those which have leased these jobs. `None` if the
    /// claim has enough.
    fn next_step(
        &self,
        ask: &ClaimRequest,
        leased: &[Delivery],
        bytes: ClaimBytes,
    ) -> Option<Claim> {
        let first = self.claim_call(ask);
        if leased.is_empty() {
            return Some(first);
        }
        let missing = self.most_to_claim(ask).saturating_sub(leased.len());
        let most = first.most.min(missing);
        (most > 0 && !bytes.is_full()).then_some(Claim { most, bytes, ..first })
    }

    fn most_to_claim(&self, ask: &ClaimRequest) -> usize {
        let most = ask.max.min(self.capabilities().limits.max_jobs_per_call);
        usize::try_from(most.get()).unwrap_or(usize::MAX)
    }
}

/// The jobs that the steps of a claim have leased so far. If the claim is dropped between
/// two steps, they are given back at once (R22).
struct Leased<'a> {
    queue: &'a SqliteQueue,
    deliveries: Vec<Delivery>,
}

impl Drop for Leased<'_> {
    fn drop(&mut self) {
        for page in self.deliveries.chunks(self.queue.max_jobs_per_step()) {
            let receipts = page.iter().map(|delivery| delivery.receipt.clone());
            let call = GiveBack { receipts: receipts.collect() };
            self.queue.db_thread().call_in_background(call);
        }
    }
}

/// Returns how many bytes a job's stored payload and headers take.
fn size(row: &ReadyRow) -> usize {
    [&row.payload, &row.headers].into_iter().flatten().map(Vec::len).sum()
}

/// Decodes a job into a delivery. Returns the reason if it cannot be decoded (R3).
fn deliver(row: ReadyRow, token: &[u8], asked: Duration) -> Result<Delivery, String> {
    let damaged = |error: InvalidName| unreadable(&error.to_string());
    let id = JobId::new(&row.id).map_err(damaged)?;
    let payload = row.payload.ok_or_else(|| unreadable(NO_PAYLOAD))?;
    let headers: Headers = headers::decode(row.headers.as_deref())
        .ok_or_else(|| unreadable(DAMAGED_HEADERS))?;
    let lease = row.lease_ms.map_or(asked, Duration::from_millis);
    let receipt = Receipt::new(id, row.attempt + 1, token.to_vec());
    let mut delivery = Delivery::new(receipt, payload, lease)
        .max_attempts(NonZeroU16::new(row.max_attempts).unwrap_or(NonZeroU16::MIN))
        .priority(Priority::new(row.priority).unwrap_or_default())
        .headers(headers)
        .enqueued_at(row.enqueued_at.map(Timestamp::from_unix_ms))
        .keeps_result(row.keeps_result);
    delivery.batch = row.batch.map(BatchId::new).transpose().map_err(damaged)?;
    Ok(delivery)
}

/// The problems of a damaged job, as the reason of its dead letter names them.
pub(crate) const NO_PAYLOAD: &str = "payload is missing";
pub(crate) const DAMAGED_HEADERS: &str = "headers are damaged";

/// The reason of a dead letter that cannot be decoded.
pub(crate) fn unreadable(what: &str) -> String {
    format!("unreadable: its {what}")
}

/// A call that reads only SQLite's `data_version`. A waiting claim uses it to notice
/// that another process wrote the file.
pub(crate) struct Poll;

impl Call for Poll {
    type Answer = i64;

    const LOOKS_FIRST: bool = true;

    fn look(&self, store: &Store<'_>) -> Result<Option<i64>, Failure> {
        store.data_version().map(Some)
    }

    fn run(&self, store: &Store<'_>) -> Result<i64, Failure> {
        store.data_version()
    }
}
