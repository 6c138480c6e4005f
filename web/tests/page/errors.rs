//! The pages that a visitor sees when something is missing or fails.

use crate::{on_each_store, site::Site};

on_each_store! {
    async fn what_is_missing_is_404(site) {
        for path in [
            "/nothing",
            "/queue/invoices",
            "/queue/%7Ba%7D/jobs/ready",
            "/queue/invoices/jobs/ready",
            "/queue/emails/jobs/asleep",
            "/queue/emails/batch/no%20batch",
            "/queue/emails/confirm/explode",
        ] {
            let answer = site.get(path).await;
            assert_eq!(answer.status, 404, "{path}");
            assert!(answer.body.contains("role=\"alert\""), "{}", answer.body);
        }
    }

    async fn what_makes_no_sense_is_400(site) {
        for path in [
            "/?after=%00",
            "/live?queue=%7B",
            "/queue/emails/job",
            "/queue/emails/job?id=%00",
            "/queue/emails/jobs/ready?after=%21%21",
            "/queue/emails/jobs/leased?worker=a%20b",
            "/queue/emails/jobs/ready?after=Zm9yZWlnbg",
        ] {
            let answer = site.get(path).await;
            assert_eq!(answer.status, 400, "{path}: {}", answer.body);
        }
    }

    async fn an_unknown_job_is_said_to_be_unknown(site) {
        let page = site.page("/queue/emails/job?id=nobody").await;

        assert!(page.contains("No stored job has this id."), "{page}");
    }
}

#[tokio::test]
async fn a_store_that_is_down_is_named_as_the_cause() {
    let mut site = Site::redis("zset").await;
    site.page("/").await;
    site.server.as_mut().unwrap().kill();

    for path in ["/queue/emails", "/queue/emails/jobs/ready", "/queue/emails/dead"] {
        let answer = site.get(path).await;
        assert_eq!(answer.status, 503, "{path}: {}", answer.body);
        assert!(answer.body.contains("the store is unavailable"), "{}", answer.body);
        assert!(answer.body.contains("All queues"), "{}", answer.body);
    }
    // The overview needs no store, and shows the error in the row of the queue.
    let began = std::time::Instant::now();
    while !site.page("/").await.contains("unavailable") {
        assert!(began.elapsed().as_secs() < 60, "the overview shows no error");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_form_that_is_too_large_is_refused() {
    let site = Site::sqlite().await;
    let form = format!("id={}", "x".repeat(100_000));
    let request = crate::client::Request::post("/queue/emails/do/pause", form);

    let answer = site.send(&request).await;

    assert_eq!(answer.status, 413);
    assert!(!site.queue.stats().await.unwrap().paused);
}
