//! The calls of an operator on a queue in memory.

use async_trait::async_trait;
use relq_core::{
    Bytes, Error, JobId, Operator, Stats,
    capabilities::ClaimBytes,
    environment::Timestamp,
    error::Operation,
    limits::DEDUPLICATION_WINDOW,
    operator::{
        Audit, Cancelled, InspectQueue, JobParts, JobView, Page, PageCursor, PeekOrder,
        PeekRequest, Redriven, RestoreQueue, Selection, StateDetail,
    },
    results::JobResult,
};

use crate::{
    job::{Job, Lease, StoredState},
    queue::{CAPABILITIES, MemoryQueue, foreign_cursor},
    state::State,
};

#[async_trait]
impl Operator for MemoryQueue {
    async fn stats(&self) -> Result<Stats, Error> {
        Ok(self.step(|state, now| state.stats(now)))
    }

    async fn peek(&self, ask: &PeekRequest) -> Result<Page, Error> {
        CAPABILITIES.check_peek(ask)?;
        let after = match &ask.after {
            None => None,
            Some(cursor) => Some(
                read_cursor(cursor, ask.order)
                    .ok_or_else(|| foreign_cursor(Operation::Peek))?,
            ),
        };
        Ok(self.step(|state, _| state.page(ask, after)))
    }

    async fn redrive(&self, which: &Selection) -> Result<Redriven, Error> {
        Ok(self.step(|state, now| state.redrive(which, now)))
    }

    async fn purge_dead(&self, which: &Selection) -> Result<u64, Error> {
        Ok(self.step(|state, now| {
            let dead = state.remove_dead(which);
            let removed = dead.len() as u64;
            dead.into_iter()
                .for_each(|(_, job)| state.end(job, JobResult::Purged, now));
            removed
        }))
    }

    async fn purge(&self) -> Result<u64, Error> {
        Ok(self.step(|state, _| {
            let removed = state.jobs.len() as u64;
            // The numbers continue, so that old receipts stay invalid (R7).
            let (is_paused, last_number) = (state.is_paused, state.last_number);
            let schedules = std::mem::take(&mut state.schedules);
            *state = State { schedules, is_paused, last_number, ..State::default() };
            removed
        }))
    }

    async fn cancel(&self, job: &JobId) -> Result<Cancelled, Error> {
        Ok(self.step(|state, now| state.cancel(job, now)))
    }

    async fn pause(&self) -> Result<(), Error> {
        self.step(|state, _| state.is_paused = true);
        Ok(())
    }

    async fn resume(&self) -> Result<(), Error> {
        self.step(|state, _| state.is_paused = false);
        Ok(())
    }

    /// A job cannot be in two states here, because there is one map.
    async fn audit(&self) -> Result<Audit, Error> {
        Ok(self.step(|state, _| Audit {
            jobs: state.jobs.len() as u64,
            problems: state.lost_followers(),
        }))
    }

    fn inspect_queue(&self) -> Option<&dyn InspectQueue> {
        Some(self)
    }

    fn restore_queue(&self) -> Option<&dyn RestoreQueue> {
        Some(self)
    }
}

impl State {
    fn stats(&self, now: Timestamp) -> Stats {
        let mut stats = Stats::new();
        for job in self.jobs.values() {
            match &job.state {
                StoredState::Ready => {
                    let age = Some(now.since(job.ready_at));
                    stats.ready += 1;
                    stats.oldest_ready_age = stats.oldest_ready_age.max(age);
                }
                StoredState::Dead { .. } => stats.dead += 1,
                StoredState::Leased(lease) => {
                    stats.leased += 1;
                    stats.overdue += u64::from(lease.until <= now);
                }
                StoredState::Held { .. } => stats.scheduled += 1,
                StoredState::Scheduled { due } => {
                    let due_in = due.since(now);
                    let next =
                        stats.next_due_in.map_or(due_in, |next| next.min(due_in));
                    stats.scheduled += 1;
                    stats.next_due_in = Some(next);
                    let age = (*due <= now).then(|| now.since(*due));
                    stats.oldest_ready_age = stats.oldest_ready_age.max(age);
                }
            }
        }
        stats.finished = self.finished;
        stats.discarded = self.discarded;
        stats.cancelled = self.cancelled;
        stats.paused = self.is_paused;
        stats
    }

    fn page(&self, ask: &PeekRequest, after: Option<Position>) -> Page {
        let follows = |at: &Position| match (after, ask.order) {
            (None, _) => true,
            (Some(after), PeekOrder::AsServed) => *at > after,
            (Some(after), PeekOrder::NewestFirst) => *at < after,
        };
        let mut found: Vec<_> = self
            .jobs
            .iter()
            .filter(|(_, job)| detail(job).state() == ask.state)
            .map(|(place, job)| (position(*place, job), job))
            .filter(|(at, _)| follows(at))
            .collect();
        found.sort_by_key(|(at, _)| *at);
        if ask.order == PeekOrder::NewestFirst {
            found.reverse();
        }
        let shown = match ask.parts {
            JobParts::Whole => view,
            JobParts::Outline => outline,
        };
        let (mut page, mut bytes) = (Page::default(), ClaimBytes::default());
        let mut last = None;
        for (at, job) in found {
            let view = shown(job);
            let is_full = page.jobs.len() == ask.limit.get() as usize;
            if is_full || !bytes.take(view.total_bytes()) {
                page.next = last.map(|last| write_cursor(last, ask.order));
                break;
            }
            page.jobs.push(view);
            last = Some(at);
        }
        page
    }

    fn remove_dead(&mut self, which: &Selection) -> Vec<(u64, Job)> {
        let is_meant = |job: &Job| match which {
            Selection::All => true,
            Selection::Only(ids) => ids.contains(&job.id),
        };
        let dead = self.jobs.extract_if(.., |_, job| job.is_dead() && is_meant(job));
        let mut dead: Vec<_> = dead.collect();
        dead.sort_by_key(|(place, job)| position(*place, job));
        dead
    }

    fn redrive(&mut self, which: &Selection, now: Timestamp) -> Redriven {
        let mut redriven = Redriven::default();
        for (position, job) in self.remove_dead(which) {
            let key = job.job.unique.as_ref().map(|unique| &unique.key);
            if key.is_some_and(|key| self.live_holder(key, now).is_some()) {
                self.jobs.insert(position, job);
                redriven.duplicates += 1;
                continue;
            }
            self.forget_progress(&job.id);
            let expires_at = job.expires_at.filter(|at| *at > now);
            let state = StoredState::Ready;
            self.enqueue(Job {
                attempt: 0,
                last_error: None,
                expires_at,
                ready_at: now,
                state,
                ..job
            });
            redriven.moved += 1;
        }
        redriven
    }

    fn cancel(&mut self, id: &JobId, now: Timestamp) -> Cancelled {
        let mut found =
            self.jobs.extract_if(.., |_, job| job.id == *id && !job.is_dead());
        let Some((_, job)) = found.next() else { return Cancelled::NotFound };
        drop(found);
        if let Some(Lease { number, until, .. }) = job.lease() {
            let until = (*until).max(now).plus(DEDUPLICATION_WINDOW);
            self.cancelled_leases.insert(*number, until);
        }
        self.cancelled += 1;
        let state = detail(&job).state();
        self.end(job, JobResult::Cancelled { leader: None }, now);
        Cancelled::Removed(state)
    }
}

/// A position in the list of a state, in bytes that are ordered like the list.
type Position = [u8; 16];

/// A cursor: the letter of its order, and the position of the last job that was shown.
fn write_cursor(at: Position, order: PeekOrder) -> PageCursor {
    PageCursor([&[letter(order)], &at[..]].concat().into())
}

/// The position in a cursor; `None` if the cursor is not one of a listing in this order.
fn read_cursor(cursor: &PageCursor, order: PeekOrder) -> Option<Position> {
    let (first, at) = cursor.0.split_first()?;
    at.try_into().ok().filter(|_| *first == letter(order))
}

fn letter(order: PeekOrder) -> u8 {
    match order {
        PeekOrder::AsServed => b's',
        PeekOrder::NewestFirst => b'n',
    }
}

/// The position of a job in the list of its state: by due time if scheduled, and behind
/// these if held; by urgency if ready; by time of death if dead; and then by its position
/// in the queue.
fn position(position: u64, job: &Job) -> Position {
    let rank = match job.state {
        StoredState::Scheduled { due } => due.unix_ms().max(0),
        StoredState::Held { .. } => i64::MAX,
        StoredState::Ready => i64::from(u8::MAX - job.job.priority.level()),
        StoredState::Dead { since, .. } => since.unix_ms().max(0),
        StoredState::Leased(_) => 0,
    };
    ((rank as u128) << 64 | u128::from(position)).to_be_bytes()
}

fn outline(job: &Job) -> JobView {
    let mut view = JobView::new(Some(job.id.clone()), Bytes::new(), detail(job));
    view.last_error = job.last_error.clone();
    view
}

pub(crate) fn view(job: &Job) -> JobView {
    let mut view =
        JobView::new(Some(job.id.clone()), job.job.payload.clone(), detail(job));
    view.attempt = job.attempt;
    view.max_attempts = job.job.max_attempts;
    view.priority = job.job.priority;
    view.unique = job.job.unique.as_ref().map(|unique| unique.key.clone());
    view.expires_at = job.expires_at;
    view.enqueued_at = job.enqueued_at;
    view.headers = job.job.headers.clone();
    view.last_error = job.last_error.clone();
    view.lease = job.job.lease;
    view.keep_result = job.job.keep_result;
    view
}

fn detail(job: &Job) -> StateDetail {
    match job.state.clone() {
        StoredState::Scheduled { due } => StateDetail::Scheduled { due },
        StoredState::Held { leader } => {
            StateDetail::Following { leader, delay: job.job.delay }
        }
        StoredState::Ready => StateDetail::Ready,
        StoredState::Leased(Lease { worker, since, until, .. }) => {
            StateDetail::Leased { worker, since, until }
        }
        StoredState::Dead { reason, since } => StateDetail::Dead { reason, since },
    }
}
