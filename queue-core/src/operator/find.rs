//! Finds a job by its id, with a search where the backend has no index.

use std::num::NonZeroU32;

use super::{
    InspectQueue, JobLookup, JobRecord, JobSearch, JobState, JobView, PeekRequest,
    StateDetail, Wanted,
};
use crate::{Error, JobId, Queue, capabilities::Capability};

/// How many jobs one page of a listing of held jobs has.
const PAGE: NonZeroU32 = NonZeroU32::new(500).expect("not zero");

/// Finds a job by its id in any state, on every backend (R31).
///
/// It asks [`InspectQueue::job`]. If a ready job may have the id, it then searches the
/// ready jobs, newest first, and the leased ones, and asks again. Without
/// [`Capability::Inspect`] it searches the jobs of all states. The search reads all of
/// these jobs, page by page; a caller that wants to show how far it is uses [`JobSearch`].
///
/// The record of a job that the search found has its held followers in the order in which
/// they are listed, which need not be that of their pushes.
///
/// [`JobLookup::Unknown`] then says that the search found no such job. It may miss a job
/// that moves between two states meanwhile; pause the queue first to be sure.
///
/// # Errors
/// The errors of [`Operator::peek`](crate::Operator::peek) and [`InspectQueue::job`].
pub async fn find_job(queue: &dyn Queue, job: &JobId) -> Result<JobLookup, Error> {
    use JobState::{Dead, Leased, Ready, Scheduled};
    let Some(index) = queue.inspect_queue() else {
        return search(queue, job, &[Scheduled, Ready, Leased, Dead]).await;
    };
    let found = index.job(job).await?;
    if found != JobLookup::MaybeReady {
        return Ok(found);
    }
    match search(queue, job, &[Ready, Leased]).await? {
        JobLookup::Unknown => ask_again(index, job).await,
        found => Ok(found),
    }
}

/// Asks the index for a job that the search did not find: it may have moved meanwhile.
async fn ask_again(index: &dyn InspectQueue, job: &JobId) -> Result<JobLookup, Error> {
    Ok(match index.job(job).await? {
        JobLookup::MaybeReady => JobLookup::Unknown,
        found => found,
    })
}

async fn search(
    queue: &dyn Queue,
    job: &JobId,
    states: &[JobState],
) -> Result<JobLookup, Error> {
    for state in states {
        let wanted = Wanted::default().id(job.clone());
        let mut search = JobSearch::new(queue, *state, wanted);
        while let Some(page) = search.next_page().await? {
            if let Some(found) = page.jobs.into_iter().next() {
                return stored(queue, job, found).await;
            }
        }
    }
    Ok(JobLookup::Unknown)
}

async fn stored(
    queue: &dyn Queue,
    job: &JobId,
    found: JobView,
) -> Result<JobLookup, Error> {
    let followers = followers_of(queue, job).await?;
    Ok(JobLookup::Stored(Box::new(JobRecord::new(found, followers))))
}

/// The held followers of a job, in the order in which they are listed. Held jobs are listed
/// behind all scheduled jobs with a due time, so a listing newest first ends at the first
/// of these.
async fn followers_of(queue: &dyn Queue, job: &JobId) -> Result<Vec<JobId>, Error> {
    let capabilities = queue.capabilities();
    if !capabilities.supports(Capability::Followers) {
        return Ok(Vec::new());
    }
    let is_reversed = capabilities.supports(Capability::Inspect);
    let mut ask = PeekRequest::new(JobState::Scheduled, PAGE).outline();
    if is_reversed {
        ask = ask.newest_first();
    }
    let mut followers = Vec::new();
    loop {
        let page = queue.peek(&ask).await?;
        let has_due_time = |view: &JobView| !is_held(view);
        let is_last = is_reversed && page.jobs.iter().any(has_due_time);
        let of_job = page.jobs.into_iter().filter(|view| follows(view, job));
        followers.extend(of_job.filter_map(|view| view.id));
        match page.next {
            Some(next) if !is_last => ask = ask.after(next),
            _ => break,
        }
    }
    if is_reversed {
        followers.reverse();
    }
    Ok(followers)
}

fn is_held(view: &JobView) -> bool {
    matches!(view.detail, StateDetail::Following { .. })
}

fn follows(view: &JobView, job: &JobId) -> bool {
    matches!(&view.detail, StateDetail::Following { leader, .. } if leader == job)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::listed::{Listed, at_once, job};
    use super::*;
    use crate::environment::Timestamp;

    fn id(name: &str) -> JobId {
        JobId::new(name).unwrap()
    }

    /// A ready leader, and scheduled jobs: one with a due time, and three held ones, two of
    /// which follow it.
    fn jobs() -> Vec<JobView> {
        let held = |leader: &str| StateDetail::Following {
            leader: id(leader),
            delay: Duration::ZERO,
        };
        let due = Timestamp::from_unix_ms(0);
        vec![
            job("leader", StateDetail::Ready),
            job("due", StateDetail::Scheduled { due }),
            job("z", held("leader")),
            job("other", held("z")),
            job("a", held("leader")),
        ]
    }

    fn followers(found: &JobLookup) -> Vec<&str> {
        let JobLookup::Stored(found) = found else { panic!("not found: {found:?}") };
        found.followers.iter().map(JobId::as_str).collect()
    }

    #[test]
    fn a_ready_job_is_found_with_its_followers() {
        for queue in
            [Listed::new(jobs()), Listed::new(jobs()).finding(JobLookup::MaybeReady)]
        {
            let found = at_once(find_job(&queue, &id("leader"))).unwrap();

            assert_eq!(followers(&found), ["z", "a"]);
        }
    }

    #[test]
    fn a_job_of_any_state_is_found_without_an_index() {
        let queue = Listed::new(jobs());

        let found = at_once(find_job(&queue, &id("z"))).unwrap();

        assert_eq!(followers(&found), ["other"]);
    }

    #[test]
    fn the_index_is_believed() {
        let until = Timestamp::from_unix_ms(1);
        for known in [JobLookup::Unknown, JobLookup::Ended { was_done: true, until }] {
            let queue = Listed::new(jobs()).finding(known.clone());

            assert_eq!(at_once(find_job(&queue, &id("leader"))).unwrap(), known);
        }
    }

    #[test]
    fn a_job_that_no_page_has_is_unknown() {
        for queue in
            [Listed::new(jobs()), Listed::new(jobs()).finding(JobLookup::MaybeReady)]
        {
            let found = at_once(find_job(&queue, &id("unknown"))).unwrap();

            assert_eq!(found, JobLookup::Unknown);
        }
    }
}
