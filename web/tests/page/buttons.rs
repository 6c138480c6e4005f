//! Each button does what it says, after it was asked whether it should.

use std::time::Duration;

use relq::{
    JobId, NewJob,
    batch::{BatchId, BatchState, NewBatch},
    unique::UniqueKey,
};

use crate::{client::Request, html, on_each_store, site::Site};

const HOUR: Duration = Duration::from_secs(3600);

/// Runs a job now, by the form of a page that has no button for it any more. Returns the
/// next page.
async fn run_now(site: &Site, id: &str) -> String {
    let fields = format!("id={id}&confirmed=yes");
    let answer = site.send(&Request::post("/queue/emails/do/run-now", fields)).await;
    assert_eq!(answer.status, 303, "{}", answer.body);
    site.page(answer.header("location").unwrap()).await
}

/// Buries a job with each of these unique keys, and pushes a ready job with the same key.
async fn bury_before_others(site: &Site, keys: &[&str]) {
    let job = |key: &str| NewJob::new("x").unique(UniqueKey::new(key).unwrap());
    for key in keys {
        site.push(&format!("dead-{key}"), job(key)).await;
        site.bury_next("broken").await;
    }
    for key in keys {
        site.push(&format!("ready-{key}"), job(key)).await;
    }
}

/// Without an index, the oldest dead jobs are read first.
#[tokio::test]
async fn the_question_about_a_group_without_an_index_names_the_oldest() {
    let site = Site::redis("keyspace").await;

    let page = site.page("/queue/emails/confirm/purge-group?error=%22timeout%22").await;

    assert!(page.contains("of the oldest 10,000 dead jobs"), "{page}");
}

on_each_store! {
    async fn pause_and_resume(site) {
        let page = site.page("/queue/emails").await;

        let page = site.press(&page, "Pause").await;
        assert!(page.contains("The queue is paused."), "{page}");
        assert!(site.queue.stats().await.unwrap().paused);
        let page = site.press(&page, "Resume").await;

        assert!(page.contains("The queue runs again."), "{page}");
        assert!(!site.queue.stats().await.unwrap().paused);
    }

    async fn run_now_makes_a_scheduled_job_ready(site) {
        site.push("later", NewJob::new("x").delay(HOUR)).await;
        let page = site.page("/queue/emails/job?id=later").await;

        let page = site.press_and_confirm(&page, "Run now").await;

        assert!(page.contains("The job later is ready."), "{page}");
        assert_eq!(site.counts().await, [1, 0, 0, 0]);
    }

    /// It may have become ready after the page was loaded.
    async fn run_now_says_that_a_job_is_not_scheduled(site) {
        site.push("a", NewJob::new("x")).await;

        let page = run_now(site, "a").await;

        assert!(page.contains("Nothing was changed: the job a is not scheduled."), "{page}");
        assert_eq!(site.counts().await, [1, 0, 0, 0]);
    }

    async fn run_now_says_for_which_job_a_follower_waits(site) {
        site.push("leader", NewJob::new("x")).await;
        let follower = NewJob::new("y").after(JobId::new("leader").unwrap());
        site.push("follower", follower).await;

        let page = run_now(site, "follower").await;

        let told = "Nothing was changed: the job follower waits until leader is done.";
        assert!(page.contains(told), "{page}");
        assert_eq!(site.counts().await, [1, 1, 0, 0]);
    }

    async fn cancel_removes_a_ready_job(site) {
        site.push("a", NewJob::new("x")).await;
        let list = site.page("/queue/emails/jobs/ready").await;
        let page = site.page(&html::link(&list, "a").unwrap()).await;

        let page = site.press_and_confirm(&page, "Cancel").await;

        assert!(page.contains("The job a was removed. It was ready."), "{page}");
        assert_eq!(site.counts().await, [0; 4]);
    }

    async fn cancel_removes_a_leased_job(site) {
        site.push("a", NewJob::new("x")).await;
        site.claim().await;
        let page = site.page("/queue/emails/job?id=a").await;

        let page = site.press_and_confirm(&page, "Cancel").await;

        assert!(page.contains("It was leased."), "{page}");
        assert_eq!(site.counts().await, [0; 4]);
    }

    async fn retry_makes_one_dead_job_ready(site) {
        site.bury("a", "broken").await;
        site.bury("b", "broken").await;
        let page = site.page("/queue/emails/job?id=a").await;

        let page = site.press_and_confirm(&page, "Retry").await;

        assert!(page.contains("1 dead job is ready again."), "{page}");
        assert_eq!(site.counts().await, [1, 0, 0, 1]);
    }

    /// R16: the page says why a job is not ready again.
    async fn a_retry_says_that_a_job_stays_dead(site) {
        bury_before_others(site, &["one"]).await;
        let page = site.page("/queue/emails/job?id=dead-one").await;

        let page = site.press_and_confirm(&page, "Retry").await;

        let told = "0 dead jobs are ready again. 1 job stays dead, because another job has \
                    the same unique key.";
        assert!(page.contains(told), "{page}");
        assert_eq!(site.counts().await, [1, 0, 0, 1]);
    }

    async fn a_retry_of_all_says_how_many_jobs_stay_dead(site) {
        site.bury("free", "broken").await;
        bury_before_others(site, &["one", "two"]).await;
        let page = site.page("/queue/emails/dead").await;

        let page = site.press_and_confirm(&page, "Retry all").await;

        let told = "1 dead job is ready again. 2 jobs stay dead, because another job has \
                    the same unique key.";
        assert!(page.contains(told), "{page}");
        assert_eq!(site.counts().await, [3, 0, 0, 2]);
    }

    async fn purge_removes_one_dead_job(site) {
        site.bury("a", "broken").await;
        site.bury("b", "broken").await;
        let page = site.page("/queue/emails/job?id=a").await;

        let page = site.press_and_confirm(&page, "Purge").await;

        assert!(page.contains("1 dead job was removed."), "{page}");
        assert_eq!(site.counts().await, [0, 0, 0, 1]);
    }

    async fn the_buttons_of_a_group_are_for_that_group(site) {
        for (id, error) in [("a", "timeout after 5 s"), ("b", "timeout after 7 s")] {
            site.bury(id, error).await;
        }
        site.bury("c", "<b>no</b> such user").await;
        let page = site.page("/queue/emails/dead").await;
        assert!(page.contains("timeout after # s") && page.contains("2 jobs"), "{page}");

        let page = site.press_and_confirm(&page, "Retry group").await;
        assert!(page.contains("2 dead jobs are ready again."), "{page}");
        assert_eq!(site.counts().await, [2, 0, 0, 1]);
        let page = site.press_and_confirm(&page, "Purge group").await;

        assert!(page.contains("1 dead job was removed."), "{page}");
        assert_eq!(site.counts().await, [2, 0, 0, 0]);
    }

    /// The question must not promise more than the change does.
    async fn the_question_about_a_group_says_which_jobs_are_read(site) {
        for word in ["retry-group", "purge-group"] {
            let path = format!("/queue/emails/confirm/{word}?error=%22timeout%22");
            let page = site.page(&path).await;

            assert!(page.contains("of the newest 10,000 dead jobs"), "{page}");
            assert!(!page.contains("All dead jobs"), "{page}");
        }
    }

    /// A removal ends more jobs than those that are named (R30).
    async fn the_question_about_a_removal_tells_of_followers(site) {
        for (word, follows) in [
            ("cancel?id=a", true),
            ("purge?id=a", true),
            ("purge-all", true),
            ("cancel-batch?batch=nightly", true),
            ("purge-group?error=%22timeout%22", true),
            ("retry?id=a", false),
            ("pause", false),
        ] {
            let page = site.page(&format!("/queue/emails/confirm/{word}")).await;

            let told = page.contains("Jobs that follow a removed job are cancelled.");
            assert_eq!(told, follows, "{word}: {page}");
        }
    }

    /// A browser changes line breaks in a form, and a field without text counts as missing.
    async fn the_buttons_of_a_group_work_for_every_error(site) {
        site.bury("a", "50%\r100%\rfailed").await;
        site.bury("b", " ").await;
        let page = site.page("/queue/emails/dead").await;

        let page = site.press_and_confirm(&page, "Retry group").await;
        assert!(page.contains("1 dead job is ready again."), "{page}");
        let page = site.press_and_confirm(&page, "Purge group").await;

        assert!(page.contains("1 dead job was removed."), "{page}");
        assert_eq!(site.counts().await, [1, 0, 0, 0]);
    }

    async fn all_dead_jobs_are_retried(site) {
        site.bury("a", "one").await;
        site.bury("b", "two").await;
        let page = site.page("/queue/emails/dead").await;

        let page = site.press_and_confirm(&page, "Retry all").await;

        assert!(page.contains("2 dead jobs are ready again."), "{page}");
        assert_eq!(site.counts().await, [2, 0, 0, 0]);
    }

    async fn all_dead_jobs_are_purged(site) {
        site.bury("a", "one").await;
        site.bury("b", "two").await;
        let page = site.page("/queue/emails/dead").await;

        let page = site.press_and_confirm(&page, "Purge all").await;

        assert!(page.contains("2 dead jobs were removed."), "{page}");
        assert_eq!(site.counts().await, [0; 4]);
    }

    /// A form that was not asked leads to the question, and changes nothing.
    async fn what_cannot_be_undone_asks_first(site) {
        site.bury("a", "broken").await;
        for (word, fields, before) in [
            ("retry", "id=a", "/queue/emails/job?id=a"),
            ("purge", "id=a", "/queue/emails/job?id=a"),
            ("retry-group", "error=%22broken%22", "/queue/emails/dead"),
            ("purge-group", "error=%22broken%22", "/queue/emails/dead"),
            ("retry-all", "", "/queue/emails/dead"),
            ("purge-all", "", "/queue/emails/dead"),
        ] {
            let path = format!("/queue/emails/do/{word}");
            let answer = site.send(&Request::post(path, fields)).await;

            assert_eq!(answer.status, 303, "{word}");
            let question = answer.header("location").unwrap();
            assert!(question.starts_with(&format!("/queue/emails/confirm/{word}")));
            let page = site.page(question).await;
            assert!(page.contains("Yes: "), "{word}");
            let back = html::link(&page, "No, go back");
            assert_eq!(back.as_deref(), Some(before), "{word}");
        }
        assert_eq!(site.counts().await, [0, 0, 0, 1]);
    }

    /// A change is a POST, and its result a page that can be loaded again.
    async fn a_change_by_get_is_refused(site) {
        let answer = site.get("/queue/emails/do/pause").await;

        assert_eq!(answer.status, 405);
        assert!(!site.queue.stats().await.unwrap().paused);
    }

    async fn a_notice_is_shown_once(site) {
        let page = site.page("/queue/emails").await;
        let form = html::form(&page, "Pause").unwrap();
        let answer = site.send(&Request::post(&*form.action, form.fields)).await;
        let shown = answer.header("location").unwrap();

        assert!(site.page(shown).await.contains("The queue is paused."));
        assert!(!site.page(shown).await.contains("The queue is paused."));
        let forged = site.page("/queue/emails?notice=You+are+hacked").await;
        assert!(!forged.contains("hacked"), "{forged}");
    }
}

async fn a_batch_is_cancelled(site: &Site) {
    let id = BatchId::new("nightly").unwrap();
    let batches = site.queue.batch_queue().unwrap();
    batches.create(&NewBatch::new(id.clone())).await.unwrap();
    batches.add(&id, &["a", "b"].map(NewJob::new), None).await.unwrap();
    let list = site.page("/queue/emails/batches").await;
    let page = site.page(&html::link(&list, "nightly").unwrap()).await;
    assert!(page.contains("<dt>Pieces</dt><dd>2</dd>"), "{page}");

    let page = site.press_and_confirm(&page, "Cancel batch").await;

    assert!(page.contains("The batch nightly is cancelled."), "{page}");
    let status = batches.batch(&id).await.unwrap().unwrap();
    assert!(matches!(status.state, BatchState::Completed(_)), "{:?}", status.state);
}

#[tokio::test]
async fn a_batch_of_sqlite_is_cancelled() {
    a_batch_is_cancelled(&Site::sqlite().await).await;
}

#[tokio::test]
async fn a_batch_of_stream_is_cancelled() {
    a_batch_is_cancelled(&Site::redis("stream").await).await;
}
