//! Tests of listings newest first, and of outlines.

use relq_core::{
    Disposition, Error, NewJob, Operator as _, Priority, ReliableQueue as _,
    ReliableQueueExt as _, Settlement,
    limits::MAX_ERROR_BYTES,
    operator::{InspectQueue as _, JobState, JobView, PeekRequest, StateDetail},
};
use relq_sqlite::SqliteQueue;

use super::{add, named};
use crate::fixture::{Folder, LONG, ask, many, raw};

/// Lists all jobs that `first` asks for, page by page.
async fn list(queue: &SqliteQueue, first: PeekRequest) -> Vec<JobView> {
    let (mut ask, mut jobs) = (first, Vec::new());
    loop {
        let page = queue.peek(&ask).await.unwrap();
        jobs.extend(page.jobs);
        ask.after = page.next;
        if ask.after.is_none() {
            return jobs;
        }
    }
}

fn ids(jobs: &[JobView]) -> Vec<&str> {
    jobs.iter().map(|job| job.id.as_ref().unwrap().as_str()).collect()
}

/// Asserts that the jobs of a state are listed newest first in the reverse order, whatever
/// the size of the pages.
async fn is_reversed(queue: &SqliteQueue, state: JobState, count: usize) {
    let mut served = list(queue, PeekRequest::new(state, many(100))).await;
    assert_eq!(served.len(), count, "{state:?}");
    served.reverse();
    for size in 1..=9 {
        let ask = PeekRequest::new(state, many(size)).newest_first();
        assert_eq!(list(queue, ask).await, served, "{state:?}, {size} a page");
    }
}

/// B4, R31: ready jobs of several priorities and pieces of several batches are read by
/// four queries.
#[tokio::test]
async fn ready_jobs_and_pieces_are_listed_in_reverse() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    let levels = [Priority::LOWEST, Priority::NORMAL, Priority::HIGHEST];
    for priority in levels.into_iter().chain(levels) {
        queue.push_one(NewJob::new("job").priority(priority)).await.unwrap();
    }
    for batch in ["b", "a"] {
        add(&queue, batch, &["one".into(), "two".into(), "three".into()]).await;
    }

    is_reversed(&queue, JobState::Ready, 12).await;
    queue.purge().await.unwrap();
    add(&queue, "only", &["one".into(), "two".into()]).await;
    is_reversed(&queue, JobState::Ready, 2).await;
}

/// R30, R31: jobs with the same due time, and held followers.
#[tokio::test]
async fn scheduled_jobs_are_listed_in_reverse() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    let lead = named("lead");
    let after = |name: &str| named(name).after(super::id("lead"));
    let later = |name: &str| named(name).delay(LONG);
    let jobs = [lead, after("f"), later("a"), after("g"), later("b"), later("c")];
    queue.push(&jobs, None).await.unwrap();

    is_reversed(&queue, JobState::Scheduled, 5).await;
}

/// R31: jobs that were claimed by one call, and jobs that were buried by one call.
#[tokio::test]
async fn leased_and_dead_jobs_are_listed_in_reverse() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    for _ in 0..2 {
        queue.push(&vec![NewJob::new("job"); 3], None).await.unwrap();
        queue.claim(&ask("w").max(many(3))).await.unwrap();
    }
    is_reversed(&queue, JobState::Leased, 6).await;

    queue.release_worker(&ask("w").worker).await.unwrap();
    bury_all(&queue, "no").await;
    is_reversed(&queue, JobState::Dead, 6).await;
}

async fn bury_all(queue: &SqliteQueue, error: &str) {
    let taken = queue.claim(&ask("w").max(many(1000))).await.unwrap();
    let dead = || Disposition::Dead { error: error.to_owned() };
    let done = taken.iter().map(|it| Settlement::new(it.receipt.clone(), dead()));
    queue.settle(&done.collect::<Vec<_>>()).await.unwrap();
}

/// R31: an outline has its defaults in place of what the statement does not read.
#[tokio::test]
async fn an_outline_has_no_body() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    let job = named("job").header("name", "value").priority(Priority::HIGHEST);
    queue.push_one(job).await.unwrap();
    bury_all(&queue, "no").await;
    let ask = PeekRequest::new(JobState::Dead, many(9));

    let whole = list(&queue, ask.clone()).await.remove(0);
    let outline = list(&queue, ask.outline()).await.remove(0);

    let mut wanted = JobView::new(whole.id, "", whole.detail);
    wanted.last_error = Some("no".to_owned());
    assert_eq!(outline, wanted);
}

/// R3: a listing says of a job with damaged headers that no worker can run it, with the reason
/// of the dead letter that a claim makes of it.
#[tokio::test]
async fn a_damaged_job_is_listed_with_the_reason() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    queue.push_one(named("job").header("name", "value")).await.unwrap();
    let damage = "UPDATE bodies SET headers = x'FF'";
    raw(&folder.file()).execute_batch(damage).unwrap();

    let ready = list(&queue, PeekRequest::new(JobState::Ready, many(9))).await;

    assert!(queue.claim_one(&ask("w")).await.unwrap().is_none());
    let dead = list(&queue, PeekRequest::new(JobState::Dead, many(9))).await.remove(0);
    let StateDetail::Dead { reason, .. } = dead.detail else { panic!("it is dead") };
    assert_eq!(ready[0].unreadable, Some(reason));
}

/// R21: outlines have no payloads, but long errors also end a page.
#[tokio::test]
async fn a_page_of_long_errors_is_short() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    queue.push(&vec![NewJob::new("job"); 300], None).await.unwrap();
    bury_all(&queue, &"x".repeat(MAX_ERROR_BYTES)).await;
    let ask = PeekRequest::new(JobState::Dead, many(1000)).newest_first().outline();

    let page = queue.peek(&ask).await.unwrap();

    assert!((100..150).contains(&page.jobs.len()), "{}", page.jobs.len());
    assert_eq!(list(&queue, ask).await.len(), 300);
}

/// R31: a cursor is refused by a listing in the other order, and by a list of workers.
#[tokio::test]
async fn a_cursor_of_another_listing_is_refused() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    queue.push(&vec![NewJob::new("job"); 2], None).await.unwrap();
    let ask = PeekRequest::new(JobState::Ready, many(1));
    let served = queue.peek(&ask).await.unwrap().next.unwrap();
    let newest = queue.peek(&ask.clone().newest_first()).await.unwrap().next.unwrap();

    for refused in [
        queue.peek(&ask.clone().after(newest.clone())).await.map(drop),
        queue.peek(&ask.clone().newest_first().after(served.clone())).await.map(drop),
        queue.workers(Some(&served), many(1)).await.map(drop),
        queue.workers(Some(&newest), many(1)).await.map(drop),
    ] {
        assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    }
}

/// R31: jobs that end in the part that was already listed hide none of the others.
#[tokio::test]
async fn removed_jobs_hide_no_other() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    let jobs: Vec<_> = (0..6).map(|number| named(&number.to_string())).collect();
    queue.push(&jobs, None).await.unwrap();
    let mut ask = PeekRequest::new(JobState::Ready, many(2)).newest_first();
    let page = queue.peek(&ask).await.unwrap();
    assert_eq!(ids(&page.jobs), ["5", "4"]);
    raw(&folder.file()).execute("DELETE FROM jobs WHERE id IN ('4', '0')", []).unwrap();
    queue.push_one(named("new")).await.unwrap();

    ask.after = page.next;

    assert_eq!(ids(&list(&queue, ask).await), ["3", "2", "1"]);
}
