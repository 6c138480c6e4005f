//! Makes dead jobs ready again, or removes them. One call handles one page, so that
//! calls of workers run in between.

use relq_core::{
    JobId,
    operator::{Redriven, Selection},
};

use crate::call::{Call, PAGE_WEIGHT};
use crate::failure::Failure;
use crate::followers::Moved;
use crate::push::find_live_holder;
use crate::statements::{Buried, DeadKey, End};
use crate::store::Store;

/// The dead jobs that a redrive or purge has not processed yet.
pub(crate) enum DeadSelection {
    /// The jobs after position `after`, up to and including position `last`; and then, if
    /// there is a position `past`, those up to that one. Jobs that are buried during the
    /// redrive or purge are not included.
    Range { after: DeadKey, last: DeadKey, past: Option<DeadKey> },
    /// The dead jobs with these ids.
    Ids(Vec<JobId>),
}

/// The result of one page, and the jobs that remain for the next page.
pub(crate) struct Treated<T> {
    pub(crate) done: T,
    pub(crate) rest: Option<DeadSelection>,
}

/// Determines which dead jobs an operator's selection covers at this time. The result
/// is `None` if all dead jobs were selected and no job is dead.
pub(crate) struct Select {
    pub(crate) which: Selection,
}

impl Select {
    fn select(&self, store: &Store<'_>) -> Result<Option<DeadSelection>, Failure> {
        match &self.which {
            Selection::Only(ids) => Ok(Some(DeadSelection::Ids(ids.clone()))),
            Selection::All => select_all(store),
        }
    }
}

/// Selects all dead jobs. A restored job may have a later time of death than the clock shows
/// (R34), and so may a job from before the clock was set back. These jobs come first: what is
/// buried meanwhile lies between them and the others, until the clock reaches the first of them.
fn select_all(store: &Store<'_>) -> Result<Option<DeadSelection>, Failure> {
    let now = store.now_ms();
    let Some(last) = store.last_dead(i64::MAX)? else { return Ok(None) };
    let end_of_now = DeadKey::last_of(now);
    Ok(Some(if last > end_of_now {
        DeadSelection::Range { after: end_of_now, last, past: store.last_dead(now)? }
    } else {
        DeadSelection::Range { after: DeadKey::START, last, past: None }
    }))
}

impl Call for Select {
    type Answer = Option<DeadSelection>;

    const LOOKS_FIRST: bool = true;

    fn look(&self, store: &Store<'_>) -> Result<Option<Self::Answer>, Failure> {
        self.select(store).map(Some)
    }

    fn run(&self, store: &Store<'_>) -> Result<Self::Answer, Failure> {
        self.select(store)
    }
}

/// Makes one page of the selected dead jobs ready again.
pub(crate) struct Redrive(pub(crate) DeadSelection);

impl Call for Redrive {
    type Answer = Treated<Redriven>;

    fn weight(&self) -> usize {
        PAGE_WEIGHT
    }

    fn run(&self, store: &Store<'_>) -> Result<Treated<Redriven>, Failure> {
        let (jobs, rest) = self.0.page(store)?;
        store.promote_due(store.page)?;
        let mut done = Redriven::default();
        for job in &jobs {
            match redrive_one(store, job)? {
                RedriveOutcome::Moved => done.moved += 1,
                RedriveOutcome::KeyIsHeld => done.duplicates += 1,
            }
        }
        store.wake_claims();
        Ok(Treated { done, rest })
    }
}

enum RedriveOutcome {
    Moved,
    KeyIsHeld,
}

fn redrive_one(store: &Store<'_>, job: &Buried) -> Result<RedriveOutcome, Failure> {
    if let Some(key) = &job.unique_key
        && find_live_holder(store, key)?.is_some()
    {
        return Ok(RedriveOutcome::KeyIsHeld);
    }
    store.redrive(job.key.job, store.take_turns(1)?)?;
    if job.remembered.keep_ms.is_some() {
        store.set_progress(&job.remembered.id, None)?;
    }
    Ok(RedriveOutcome::Moved)
}

/// Removes one page of the selected dead jobs, or less if they have many followers.
pub(crate) struct PurgeDead(pub(crate) DeadSelection);

impl Call for PurgeDead {
    type Answer = Treated<u64>;

    fn weight(&self) -> usize {
        PAGE_WEIGHT
    }

    fn run(&self, store: &Store<'_>) -> Result<Treated<u64>, Failure> {
        let (jobs, mut rest) = self.0.page(store)?;
        let (mut moved, mut done) = (Moved::default(), 0);
        for job in &jobs {
            moved.add(store.remove_job(job.key.job, &job.remembered, End::Purged)?);
            done += 1;
            if moved.is_page(store) {
                rest = self.0.behind(job.key, &jobs[done..], rest);
                break;
            }
        }
        moved.cancel_orphans(store)?;
        Ok(Treated { done: u64::try_from(done).unwrap_or(u64::MAX), rest })
    }
}

impl DeadSelection {
    fn page(
        &self,
        store: &Store<'_>,
    ) -> Result<(Vec<Buried>, Option<DeadSelection>), Failure> {
        match self {
            Self::Range { after, last, past } => {
                let jobs = store.dead_page(*after, *last, store.page)?;
                let end = jobs.last().filter(|_| jobs.len() == store.page as usize);
                let rest = match (end, past) {
                    (Some(end), _) => Some(self.after(end.key)),
                    (None, Some(past)) => Some(Self::Range {
                        after: DeadKey::START,
                        last: *past,
                        past: None,
                    }),
                    (None, None) => None,
                };
                Ok((jobs, rest))
            }
            Self::Ids(ids) => {
                let (ids, rest) = ids.split_at(ids.len().min(store.page as usize));
                let rest = (!rest.is_empty()).then(|| Self::Ids(rest.to_vec()));
                Ok((find_all(store, ids)?, rest))
            }
        }
    }
}

impl DeadSelection {
    /// This selection without the jobs of its range up to the position `after`.
    fn after(&self, after: DeadKey) -> Self {
        match self {
            Self::Range { last, past, .. } => {
                Self::Range { after, last: *last, past: *past }
            }
            Self::Ids(ids) => Self::Ids(ids.clone()),
        }
    }

    /// The rest of this selection if only a part of its page was treated: the jobs
    /// behind `last`, of which `left` are in the page and `rest` are not.
    fn behind(
        &self,
        after: DeadKey,
        left: &[Buried],
        rest: Option<Self>,
    ) -> Option<Self> {
        if left.is_empty() {
            return rest;
        }
        Some(match (self, rest) {
            (Self::Range { .. }, _) => self.after(after),
            (Self::Ids(_), rest) => {
                let left =
                    left.iter().filter_map(|job| JobId::new(&job.remembered.id).ok());
                let rest = match rest {
                    Some(Self::Ids(rest)) => rest,
                    _ => Vec::new(),
                };
                Self::Ids(left.chain(rest).collect())
            }
        })
    }
}

/// Finds the dead jobs with these ids. A repeated id is used once. An unknown id is
/// skipped.
fn find_all(store: &Store<'_>, ids: &[JobId]) -> Result<Vec<Buried>, Failure> {
    let mut known = std::collections::HashSet::new();
    let mut found = Vec::new();
    for id in ids.iter().filter(|id| known.insert(*id)) {
        found.extend(store.find_dead(id.as_str())?);
    }
    Ok(found)
}
