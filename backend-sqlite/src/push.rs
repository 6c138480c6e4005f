//! Push: stores all of the call's jobs, or none.
//!
//! Each job is checked in this order: if its id is known (R4) or its unique key is held
//! (R16), it is a duplicate; otherwise it is stored. If one job fails, the transaction
//! of the call is rolled back, so none is stored (R5). Jobs that need no check are
//! stored together.

use std::ops::RangeFrom;

use relq_core::{
    JobId, NewJob, PushToken,
    batch::BatchId,
    operator::JobState,
    outcome::{DuplicateOf, Pushed},
    unique::OnDuplicate,
};

use crate::answers;
use crate::call::Call;
use crate::failure::Failure;
use crate::followers::{self, Candidate, NEVER};
use crate::statements::{EXPIRED, Holder, JobRow};
use crate::store::{Store, WINDOW, ms};

/// The limit on old records that one call removes: at most this many expired ids, this
/// many push calls, this many cancelled leases and this many results. A push of more jobs
/// removes as many as it has jobs.
pub(crate) const SWEPT_AT_ONCE: u32 = 100;

/// How many digits of a generated token are random. A digit has five bits, so twelve
/// digits are sixty random bits: two calls in one millisecond get different tokens.
const RANDOM_DIGITS: usize = 12;

/// A call that pushes jobs. The caller has already validated the jobs.
pub(crate) struct Push {
    pub(crate) jobs: Vec<NewJob>,
    pub(crate) token: Option<PushToken>,
}

/// Where pushed jobs are stored: in the queue or in a batch.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target<'a> {
    /// In the queue, as jobs without a batch.
    Queue,
    /// In the batch with this key and id, as its pieces.
    Batch(i64, &'a BatchId),
}

impl<'a> Target<'a> {
    fn key(self) -> Option<i64> {
        match self {
            Self::Queue => None,
            Self::Batch(key, _) => Some(key),
        }
    }

    fn id(self) -> Option<&'a BatchId> {
        match self {
            Self::Queue => None,
            Self::Batch(_, id) => Some(id),
        }
    }
}

/// Returns the name under which a push call is stored. A push to a batch includes the
/// batch's id, because the same token names another call there (R4). The separator `/`
/// never occurs in a token.
fn call_name(batch: Option<&BatchId>, token: &PushToken) -> String {
    batch.map_or_else(|| token.to_string(), |batch| format!("{batch}/{token}"))
}

impl Call for Push {
    type Answer = Vec<Pushed>;

    fn weight(&self) -> usize {
        self.jobs.len()
    }

    fn bytes(&self) -> usize {
        self.jobs.iter().map(NewJob::total_bytes).sum()
    }

    fn run(&self, store: &Store<'_>) -> Result<Vec<Pushed>, Failure> {
        match self.first_answers(store, None)? {
            Some(answers) => Ok(answers),
            None => self.store_all(store, Target::Queue),
        }
    }
}

impl Push {
    /// Returns the results of an earlier call with this token. `None` if this is the
    /// first call with it, or the call has no token.
    pub(crate) fn first_answers(
        &self,
        store: &Store<'_>,
        batch: Option<&BatchId>,
    ) -> Result<Option<Vec<Pushed>>, Failure> {
        let Some(token) = &self.token else { return Ok(None) };
        let Some((jobs, text)) = store.find_push_call(&call_name(batch, token))? else {
            return Ok(None);
        };
        if jobs != self.jobs.len() {
            return Err(Failure::invalid(format!(
                "the push token was used for a call of {jobs} jobs, and this one has \
                 {}; give each call a token of its own",
                self.jobs.len(),
            )));
        }
        let answers = answers::decode(token, jobs, &text);
        answers.map(Some).ok_or_else(|| {
            Failure::unusable("the answers of an earlier push are damaged")
        })
    }

    /// Stores the jobs, and their results if the call has a token.
    pub(crate) fn store_all(
        &self,
        store: &Store<'_>,
        target: Target<'_>,
    ) -> Result<Vec<Pushed>, Failure> {
        let Some(token) = &self.token else {
            return self.store_each(store, &ordered_token(store), target);
        };
        let answers = self.store_each(store, token, target)?;
        let (text, until) = (answers::encode(token, &answers), store.ms_after(WINDOW));
        let name = call_name(target.id(), token);
        store.add_push_call(&name, answers.len(), &text, until)?;
        Ok(answers)
    }

    fn store_each(
        &self,
        store: &Store<'_>,
        token: &PushToken,
        target: Target<'_>,
    ) -> Result<Vec<Pushed>, Failure> {
        let mut candidates = self.candidates(token);
        followers::check_leaders(store, &mut candidates)?;
        if self.remembers() {
            // Remove at least as many outdated records as the push adds, so that they cannot
            // grow for ever.
            let added = u32::try_from(candidates.len()).unwrap_or(u32::MAX);
            store.sweep(SWEPT_AT_ONCE.max(added))?;
        }
        let turns = self.turns(store)?;
        store.wake_claims();
        let mut call = Stored { store, batch: target.key(), answers: Vec::new() };
        let mut new = Vec::new();
        for (candidate, turn) in candidates.into_iter().zip(turns) {
            if candidate.may_be_known || candidate.job.unique.is_some() {
                // Store the jobs before it first: it may be a duplicate of one of them.
                call.add(&mut new)?;
                if let Some(duplicate) = find_duplicate(store, &candidate)? {
                    call.answers.push(duplicate);
                    continue;
                }
            }
            new.push(New { candidate, turn });
        }
        call.add(&mut new)?;
        Ok(call.answers)
    }

    fn candidates(&self, token: &PushToken) -> Vec<Candidate<'_>> {
        let jobs = self.jobs.iter().enumerate();
        let candidates = jobs.map(|(index, job)| Candidate {
            job,
            id: job.id.clone().unwrap_or_else(|| token.job_id(index)),
            may_be_known: job.id.is_some() || self.token.is_some(),
            is_held: false,
        });
        candidates.collect()
    }

    /// Whether this call stores an id, a result or a token that must be remembered. Only
    /// such a call also removes what need not be remembered any longer.
    fn remembers(&self) -> bool {
        self.token.is_some() || self.jobs.iter().any(is_remembered)
    }

    /// Reserves a position in the queue for each job. If one of the jobs is ready at
    /// once, due jobs are promoted first, so that they come before the new jobs.
    fn turns(&self, store: &Store<'_>) -> Result<RangeFrom<i64>, Failure> {
        if self.jobs.iter().any(|job| job.delay.is_zero()) {
            store.promote_due(store.page)?;
        }
        let count = u32::try_from(self.jobs.len()).expect("below the limit on batches");
        Ok(store.take_turns(count)?..)
    }
}

/// The jobs that a call has stored so far.
struct Stored<'a> {
    store: &'a Store<'a>,
    /// The key of the batch that the jobs belong to; `None` for jobs without a batch.
    batch: Option<i64>,
    answers: Vec<Pushed>,
}

impl Stored<'_> {
    /// Stores the jobs of the list, none of which is a duplicate, and empties the list.
    fn add(&mut self, new: &mut Vec<New<'_>>) -> Result<(), Failure> {
        if new.is_empty() {
            return Ok(());
        }
        let first = if new.len() > 1 { Some(self.store.next_key()?) } else { None };
        let keys = (0..).map(|index| first.map(|first| first + index));
        let rows = new.iter().zip(keys).map(|(new, key)| new.row(key, self.store));
        let last = self.store.add_jobs(&rows.collect::<Vec<_>>(), self.batch)?;
        let keys = first.unwrap_or(last)..;
        let bodies = keys.clone().zip(new.iter().map(|new| new.candidate.job));
        self.store.add_bodies(&bodies.collect::<Vec<_>>())?;
        for (New { candidate, .. }, job) in new.drain(..).zip(keys) {
            self.add_side_rows(&candidate, job)?;
            self.answers.push(Pushed::Stored(candidate.id));
        }
        Ok(())
    }

    fn add_side_rows(&self, new: &Candidate<'_>, job: i64) -> Result<(), Failure> {
        if new.job.keep_result.is_some() {
            self.store.add_result(new.id.as_str())?;
        }
        if let (Some(leader), true) = (&new.job.after, new.is_held) {
            let (delay, bytes) = (ms(new.job.delay), new.job.total_bytes());
            self.store.add_follower(leader.as_str(), job, delay, bytes)?;
        }
        Ok(())
    }
}

/// A job to store, with its position in the queue.
struct New<'a> {
    candidate: Candidate<'a>,
    /// The job's position among the ready jobs, or among the jobs that are due at the
    /// same time.
    turn: i64,
}

impl New<'_> {
    fn row(&self, key: Option<i64>, store: &Store<'_>) -> JobRow<'_> {
        let Candidate { job, ref id, is_held, .. } = self.candidate;
        let delayed = || (!job.delay.is_zero()).then(|| store.ms_after(job.delay));
        JobRow {
            job: key,
            id: id.as_str(),
            keeps_id: is_remembered(job),
            keep_ms: job.keep_result.map(ms),
            priority: job.priority.level(),
            turn: self.turn,
            due: if is_held { Some(NEVER) } else { delayed() },
            max_attempts: job.max_attempts.get(),
            lease_ms: job.lease.map(ms),
            expires_at: job.expires_in.map(|after| store.ms_after(after)),
            unique_key: job.unique.as_ref().map(|unique| unique.key.as_str()),
        }
    }
}

/// Finds the job that has the id (R4) or holds the unique key of a job (R16), so that it is
/// not stored.
fn find_duplicate(
    store: &Store<'_>,
    new: &Candidate<'_>,
) -> Result<Option<Pushed>, Failure> {
    if new.may_be_known && store.is_id_taken(new.id.as_str())? {
        let (existing, by) = (new.id.clone(), DuplicateOf::Id);
        return Ok(Some(Pushed::Duplicate { existing, by }));
    }
    let Some(unique) = &new.job.unique else { return Ok(None) };
    let Some(holder) = find_live_holder(store, unique.key.as_str())? else {
        return Ok(None);
    };
    let moves = unique.on_duplicate == OnDuplicate::Reschedule;
    if moves && !holder.is_held && holder.state == JobState::Scheduled.as_str() {
        store.reschedule(holder.job, store.ms_after(new.job.delay))?;
    }
    let (existing, by) = (holder_id(&holder)?, DuplicateOf::UniqueKey);
    Ok(Some(Pushed::Duplicate { existing, by }))
}

/// Whether the id of a job is remembered after its end: a client made it (R4), or a
/// producer reads what became of the job by it (R29).
pub(crate) fn is_remembered(job: &NewJob) -> bool {
    job.id.is_some() || job.keep_result.is_some()
}

/// Finds the job that holds a unique key. If that job has expired, frees the key and
/// returns `None` (R16): a held follower gives its key away and stays held, because only the
/// end of its leader changes that (R30). Any other job is buried.
pub(crate) fn find_live_holder(
    store: &Store<'_>,
    key: &str,
) -> Result<Option<Holder>, Failure> {
    let Some(holder) = store.find_holder(key)? else { return Ok(None) };
    let is_leased = holder.state == JobState::Leased.as_str();
    match holder.expires_at {
        Some(at) if at <= store.now_ms() && !is_leased => {
            if holder.is_held {
                store.free_key(holder.job)?;
            } else {
                store.bury(holder.job, EXPIRED, None)?;
            }
            Ok(None)
        }
        _ => Ok(Some(holder)),
    }
}

/// The id of the job that holds a unique key.
pub(crate) fn holder_id(holder: &Holder) -> Result<JobId, Failure> {
    JobId::new(&holder.id).map_err(|error| {
        Failure::unusable(format!("the holder of a unique key is damaged: {error}"))
    })
}

/// Generates a token for a call without one. It begins with the time, so that the ids
/// that are derived from it are next to each other at the end of their index.
fn ordered_token(store: &Store<'_>) -> PushToken {
    PushToken::ordered(store.now, RANDOM_DIGITS, store.random)
}
