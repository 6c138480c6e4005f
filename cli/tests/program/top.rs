//! `relq top`: the queues of a store in a terminal.

use std::{num::NonZeroU32, time::Duration};

use relq::{
    ClaimRequest, Disposition, JobId, NewJob, Queue, QueueName, ReliableQueueExt as _,
    Settlement, WorkerId, operator::WorkerReport, unique::UniqueKey,
};
use tokio::runtime::Runtime;

use crate::{
    on_each_store,
    relq::{Store, wait_until},
    terminal::Terminal,
};

pub(crate) const ENTER: &str = "\r";
const ESCAPE: &str = "\x1b";
const DOWN: &str = "\x1b[B";
const PAGE_DOWN: &str = "\x1b[6~";

/// A worker whose id tells its host and its process.
const WORKER: &str = "mail-7.example.org:4711:k3xq8v2d";

/// Calls the library on a queue.
fn with_queue<T>(
    store: &Store,
    name: &str,
    call: impl AsyncFnOnce(&dyn Queue) -> T,
) -> T {
    Runtime::new().unwrap().block_on(async {
        let name = QueueName::new(name).unwrap();
        call(&*relq::connect(&store.url, &name).await.unwrap()).await
    })
}

fn job(id: &str, payload: &str) -> NewJob {
    NewJob::new(payload.to_owned()).id(JobId::new(id).unwrap())
}

/// Claims one job as the worker.
async fn claim(queue: &dyn Queue) -> relq::Delivery {
    let worker = WorkerId::new(WORKER).unwrap();
    let ask = ClaimRequest::new(worker, Duration::from_secs(600));
    queue.claim_one(&ask).await.unwrap().unwrap()
}

/// Pushes a job that dies with this error.
async fn bury(queue: &dyn Queue, job: NewJob, error: &str) {
    queue.push_one(job).await.unwrap();
    let held = claim(queue).await;
    let dead = Disposition::Dead { error: error.to_owned() };
    let settlement = Settlement::new(held.receipt.clone(), dead);
    queue.settle(&[settlement]).await.unwrap();
}

/// Fills the queue `emails` with jobs of all states: two dead ones with one error, one
/// that is leased, one that is scheduled, and two ready ones.
pub(crate) fn fill(store: &Store) {
    with_queue(store, "emails", async |queue| {
        bury(queue, job("dead-1", "bad"), "connection to smtp-3 timed out").await;
        bury(queue, job("dead-2", "bad"), "connection to smtp-4 timed out").await;
        queue.push_one(job("leased-1", "in work")).await.unwrap();
        claim(queue).await;
        let slots = NonZeroU32::new(4).unwrap();
        let report = WorkerReport::new(WorkerId::new(WORKER).unwrap(), slots);
        queue.report_worker(&report).await.unwrap();
        let later = job("later-1", "report").delay(Duration::from_secs(3600));
        queue.push_one(later).await.unwrap();
        queue.push_one(job("ready-1", "welcome, anna")).await.unwrap();
        queue.push_one(job("ready-2", "welcome, bert")).await.unwrap();
    });
}

/// Opens the first queue, and the tab of this number.
fn open(store: &Store, options: &str, tab: &str, words: &str) -> Terminal {
    let top = store.top(options);
    top.wait_for("emails");
    top.press_for(ENTER, "1 ready");
    // The first list is open already.
    if tab != "1" {
        top.press(tab);
    }
    top.wait_for(words);
    top
}

fn count(store: &Store, figure: &str) -> u64 {
    store.count("emails", figure)
}

on_each_store! {
    fn the_queues_are_shown_and_follow_the_store(store) {
        fill(store);
        store.push("-q pictures hello");
        let mut top = store.top("");
        top.wait_for("pictures");
        top.wait_for("2 queues");
        let emails = top.line("emails").unwrap();
        // The name, ready jobs, the age of the oldest, scheduled, leased and dead ones.
        let words: Vec<_> = emails.split_whitespace().collect();
        assert_eq!([words[1], words[3], words[4], words[5]], ["2", "1", "1", "2"], "{emails}");
        assert!(top.is_taken());

        store.push("-q emails -- a b c");
        wait_until("the pushed job is counted", || {
            let emails = top.line("emails").unwrap();
            emails.split_whitespace().nth(1) == Some("5")
        });
        top.press("q");
        assert_eq!(top.ends(), Some(0));
    }

    fn each_list_of_a_queue_is_shown(store) {
        fill(store);
        let mut top = open(store, "", "1", "welcome, anna");
        top.wait_for("ready-2");
        top.press_for("2", "leased-1");
        top.wait_for("mail-7.example.org 4711");
        top.press_for("3", "later-1");
        top.wait_for("59m");
        top.press_for("4", "dead-2");
        top.wait_for("connection to smtp-3 timed out");
        top.press_for("5", "connection to smtp-# timed out");
        top.press_for("6", "mail-7.example.org");
        top.wait_for("4711");
        top.wait_for("leased-1");
        // The jobs of the worker.
        top.press_for(ENTER, "of mail-7.example.org");
        top.wait_for("in work");
        top.press_for(ENTER, "lease ends");
        top.wait_for("emails: a job");
        top.press(ESCAPE);
        top.wait_for_no("lease ends");
        // Back from the jobs of the worker to the workers, and from there to the queues.
        top.press(ESCAPE);
        top.wait_for("SLOTS");
        top.press("q");
        top.wait_for("SCHED");
        top.press("q");
        assert_eq!(top.ends(), Some(0));
    }

    fn a_queue_is_paused_and_resumed(store) {
        fill(store);
        let is_paused =
            || store.relq("stats --json -q emails").json()["paused"].as_bool().unwrap();
        let top = store.top("");
        top.wait_for("emails");
        top.press_for("p", "the queue is paused");
        assert!(is_paused());
        wait_until("the list shows it", || top.line("emails").unwrap().contains("paused"));
        top.press_for("p", "the queue runs again");
        assert!(!is_paused());
        wait_until("the list shows it", || !top.line("emails").unwrap().contains("paused"));
    }

    fn a_dead_job_is_retried_after_a_question(store) {
        fill(store);
        let top = open(store, "", "4", "dead-2");
        top.press_for("r", "retry the dead job dead-2? y/N");
        top.press_for("n", "nothing was changed");
        assert_eq!(count(store, "dead"), 2);
        top.press_for("r", "retry the dead job dead-2? y/N");
        top.press_for("y", "1 ready again");
        assert_eq!((count(store, "dead"), count(store, "ready")), (1, 3));
        top.wait_for_no("dead-2");
    }

    fn a_dead_job_is_deleted_after_a_question(store) {
        fill(store);
        let top = open(store, "", "4", "dead-2");
        top.press(DOWN);
        top.press_for("x", "delete the dead job dead-1 for ever, and cancel any followers? y/N");
        top.press_for(ENTER, "nothing was changed");
        assert_eq!(count(store, "dead"), 2);
        top.press_for("\x04", "delete the dead job dead-1 for ever, and cancel any followers? y/N");
        top.press_for("y", "1 deleted");
        assert_eq!((count(store, "dead"), count(store, "ready")), (1, 2));
        top.wait_for_no("dead-1");
    }

    fn the_jobs_of_an_error_are_retried_together(store) {
        fill(store);
        with_queue(store, "emails", async |queue| bury(queue, job("other", "bad"), "no mailbox").await);
        let top = open(store, "", "5", "smtp-#");
        top.press_for("r", "retry 2 dead jobs? y/N");
        top.press_for("y", "2 ready again");
        assert_eq!((count(store, "dead"), count(store, "ready")), (1, 4));
        top.wait_for_no("smtp-#");
        top.press_for("x", "delete 1 dead job for ever, and cancel any followers? y/N");
        top.press_for("y", "1 deleted");
        assert_eq!(count(store, "dead"), 0);
    }

    fn waiting_and_running_jobs_are_deleted(store) {
        fill(store);
        let top = open(store, "", "1", "ready-2");
        top.press_for(ENTER, "state");
        top.wait_for("emails: a job");
        top.press_for("x", "delete the job ready-2, and cancel any followers? y/N");
        top.press_for("y", "was deleted; it was ready");
        assert_eq!(count(store, "ready"), 1);
        top.wait_for("this is its last record");
        top.press(ESCAPE);
        top.wait_for_no("emails: a job");
        top.press_for("2", "leased-1");
        top.press_for("x", "delete the job leased-1, and cancel any followers? y/N");
        top.press_for("y", "was deleted; it was leased");
        assert_eq!(count(store, "leased"), 0);
    }

    fn a_scheduled_job_is_run_now(store) {
        fill(store);
        let top = open(store, "", "3", "later-1");
        top.press_for("r", "run the job later-1 now? y/N");
        top.press_for("y", "the job later-1 is ready");
        assert_eq!((count(store, "scheduled"), count(store, "ready")), (0, 3));
    }

    /// Another user has run the job while the question was open.
    fn a_job_that_is_no_longer_scheduled_is_not_run_now(store) {
        fill(store);
        let top = open(store, "", "3", "later-1");
        top.press_for("r", "run the job later-1 now? y/N");
        with_queue(store, "emails", async |queue| {
            let id = JobId::new("later-1").unwrap();
            queue.inspect_queue().unwrap().run_now(&id).await.unwrap();
        });
        top.press_for("y", "nothing was changed: the job later-1 is not scheduled");
        assert_eq!((count(store, "scheduled"), count(store, "ready")), (0, 3));
    }

    fn a_follower_is_not_run_before_its_leader(store) {
        with_queue(store, "emails", async |queue| {
            queue.push_one(job("leader", "first")).await.unwrap();
            let leader = JobId::new("leader").unwrap();
            queue.push_one(job("follower", "second").after(leader)).await.unwrap();
        });
        let top = open(store, "", "3", "follower");
        top.press_for("r", "run the job follower now? y/N");
        top.press_for("y", "nothing was changed: the job follower waits until leader is done");
        assert_eq!((count(store, "scheduled"), count(store, "ready")), (1, 1));
    }

    /// R16: a live job has the unique key of a dead one.
    fn a_retry_says_how_many_jobs_stay_dead(store) {
        let keyed = |id: &str, key: &str| job(id, "x").unique(UniqueKey::new(key).unwrap());
        with_queue(store, "emails", async |queue| {
            bury(queue, job("free", "x"), "no mailbox").await;
            for key in ["one", "two"] {
                bury(queue, keyed(&format!("dead-{key}"), key), "no mailbox").await;
            }
            for key in ["one", "two"] {
                queue.push_one(keyed(&format!("ready-{key}"), key)).await.unwrap();
            }
        });
        let top = open(store, "", "5", "no mailbox");
        top.press_for("r", "retry 3 dead jobs? y/N");
        top.press_for("y", "1 ready again; 2 stay dead: another job has the same unique key");
        assert_eq!((count(store, "dead"), count(store, "ready")), (2, 3));
        top.press_for("4", "dead-two");
        top.press_for("r", "retry the dead job dead-two? y/N");
        top.press_for("y", "0 ready again; 1 stays dead: another job has the same unique key");
        assert_eq!((count(store, "dead"), count(store, "ready")), (2, 3));
    }

    fn a_view_that_is_read_only_changes_nothing(store) {
        fill(store);
        let top = open(store, "--read-only", "4", "dead-2");
        for key in ["r", "x", "p"] {
            top.press_for(key, "--read-only: nothing is changed");
            top.press("g");
            top.wait_for_no("--read-only: nothing is changed");
        }
        let stats = store.relq("stats --json -q emails").json();
        assert_eq!((&stats["dead"], &stats["paused"]), (&2.into(), &false.into()));
    }

    fn many_jobs_are_shown_page_by_page(store) {
        with_queue(store, "emails", async |queue| {
            let jobs: Vec<_> =
                (0..120).map(|at| job(&format!("job-{at:03}"), "hello")).collect();
            queue.push(&jobs, None).await.unwrap();
        });
        let top = open(store, "", "1", "job-119");
        top.wait_for("page 1; ] for the next");
        top.press_for("]", "job-069");
        top.wait_for("page 2");
        top.press_for("G", "job-020");
        top.press_for(PAGE_DOWN, "job-019");
        top.wait_for("page 3");
        top.press_for("[", "page 2");
        // A filter looks at all jobs.
        top.press("/job-007");
        top.press_for(ENTER, "120 jobs looked at");
        top.wait_for("job-007");
        top.press_for(ESCAPE, "job-119");
    }

    /// A terminal would clear its screen, set its title and colour the rest.
    fn a_hostile_payload_stays_text(store) {
        let hostile = "\x1b[2J\x1b]0;owned\x07\x1b[31m\u{9b}5m\u{202e}end";
        with_queue(store, "emails", async |queue| {
            bury(queue, job("dead-1", "bad"), hostile).await;
            queue.push_one(job("ready-1", hostile).header("kind", hostile)).await.unwrap();
        });
        let top = open(store, "", "1", r"\u{1b}[2J");
        top.press_for(ENTER, r"kind=\u{1b}[2J\u{1b}]0;owned\u{7}");
        top.wait_for(r"\u{202e}end");
        top.press(ESCAPE);
        top.wait_for_no("emails: a job");
        top.press_for("4", "dead-1");
        top.wait_for(r"\u{1b}[2J");
        top.press_for("5", r"\u{1b}[#J");
        top.press_for("q", "1 queue");
        let written = top.written();
        for sequence in [&b"\x1b]0;"[..], b"\x07", "\u{9b}".as_bytes(), "\u{202e}".as_bytes()] {
            let has = written.windows(sequence.len()).any(|window| window == sequence);
            assert!(!has, "{sequence:?} was written");
        }
    }

    fn only_the_named_queues_are_shown(store) {
        store.push("-q emails hello");
        store.push("-q pictures hello");
        let top = store.top("--only emails");
        top.wait_for("1 queue");
        assert!(!top.text().contains("pictures"), "{}", top.text());
    }
}
