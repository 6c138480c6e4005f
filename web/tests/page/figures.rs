//! Each figure of a queue, of a batch and of a job has its place on the pages. The store
//! answers with values of which no two are equal.

use std::{
    num::{NonZeroU16, NonZeroU32},
    sync::Arc,
    time::Duration,
};

use relq::{
    Error, JobId, Priority, Stats, WorkerId,
    batch::{BatchId, BatchOutcome, BatchPriority, BatchState, BatchStatus},
    environment::Timestamp,
    operator::{
        JobLookup, JobRecord, JobView, PageCursor, StateDetail, WorkerView, WorkersPage,
    },
    schedule::{Schedule, ScheduleName, Schedules},
    unique::UniqueKey,
};
use relq_conformance::{
    async_trait,
    overrides::{Override, Right},
};
use serde_json::Value;

use crate::{html, live, site::Site};

/// Answers with these figures, and with jobs of this state.
struct Distinct(StateDetail);

#[async_trait]
impl Override for Distinct {
    async fn stats(&self, _: &Right) -> Result<Stats, Error> {
        let mut stats = Stats::new();
        (stats.ready, stats.scheduled, stats.leased) = (1001, 1002, 1003);
        (stats.overdue, stats.dead) = (1004, 1005);
        (stats.finished, stats.discarded, stats.cancelled) = (1006, 1007, 1008);
        stats.oldest_ready_age = Some(Duration::from_secs(9));
        stats.next_due_in = Some(Duration::from_secs(10));
        stats.paused = true;
        Ok(stats)
    }

    async fn batch(
        &self,
        _: &Right,
        batch: &BatchId,
    ) -> Result<Option<BatchStatus>, Error> {
        let mut status = BatchStatus::new(batch.clone(), at(11));
        status.state = BatchState::Completed(BatchOutcome::Failed);
        status.priority = BatchPriority::new(8).unwrap();
        status.limit = NonZeroU32::new(6);
        (status.done, status.failed, status.dropped) = (2, 3, 5);
        (status.leased, status.waiting, status.total) = (4, 7, 21);
        (status.sealed_at, status.completed_at) = (Some(at(12)), Some(at(13)));
        Ok(Some(status))
    }

    async fn workers(
        &self,
        _: &Right,
        _: Option<&PageCursor>,
        _: NonZeroU32,
    ) -> Result<WorkersPage, Error> {
        let worker = WorkerId::new("mail-7:4711:nonce").unwrap();
        let slots = NonZeroU32::new(12).unwrap();
        let workers = vec![WorkerView::new(worker, slots, at(13))];
        Ok(WorkersPage { workers, next: None })
    }

    async fn schedules(&self, _: &Right) -> Result<Schedules, Error> {
        let hourly = relq_schedule::Cron::new("0 * * * *").unwrap();
        let spec = relq_schedule::ScheduleSpec::new(hourly, "the report").unwrap();
        let name = ScheduleName::new("nightly").unwrap();
        let schedule = Schedule::new(name, spec.to_definition().into(), at(5 * 3600));
        Ok(Schedules::new(at(5 * 3600 + 1800), vec![schedule]))
    }

    async fn job(&self, _: &Right, job: &JobId) -> Result<JobLookup, Error> {
        let mut view = JobView::new(Some(job.clone()), "the payload", self.0.clone());
        view.attempt = 2;
        view.max_attempts = NonZeroU16::new(7).unwrap();
        view.priority = Priority::new(8).unwrap();
        view.unique = UniqueKey::new("the-key").ok();
        view.expires_at = Some(at(21));
        view.enqueued_at = Some(at(22));
        view.headers = [("tenant", "acme")].into_iter().collect();
        view.last_error = Some("disk full".to_owned());
        view.batch = BatchId::new("nightly").ok();
        view.lease = Some(Duration::from_secs(23));
        view.keep_result = Some(Duration::from_secs(24));
        let followers = vec![JobId::new("follower").unwrap()];
        Ok(JobLookup::Stored(Box::new(JobRecord::new(view, followers))))
    }
}

/// The time that is so many seconds after the begin of 1970.
fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix_ms(seconds * 1000)
}

/// How a page writes this time.
fn written(seconds: u32) -> String {
    format!("<time datetime=\"1970-01-01T00:00:{seconds}Z\">")
}

async fn site(detail: StateDetail) -> Site {
    Site::overridden(Arc::new(Distinct(detail))).await
}

/// Asserts that the page describes these names by these values.
#[track_caller]
fn assert_described(page: &str, values: &[(&str, &str)]) {
    for (name, value) in values {
        let part = format!("<dt>{name}</dt><dd>{value}");
        assert!(page.contains(&part), "{name} is {value}, in {page}");
    }
}

#[tokio::test]
async fn each_figure_of_a_queue_has_its_place() {
    let site = site(StateDetail::Ready).await;

    let (overview, page) = (site.page("/").await, site.page("/queue/emails").await);

    for (count, value) in [
        ("ready", "1,001"),
        ("scheduled", "1,002"),
        ("leased", "1,003"),
        ("dead", "1,005"),
    ] {
        let place = format!("data-queue=\"emails\" data-count=\"{count}\">{value}<");
        assert!(overview.contains(&place), "{count} is {value}, in {overview}");
        assert!(page.contains(&place), "{count} is {value}, in {page}");
    }
    assert!(overview.contains(">paused<"), "{overview}");
    assert!(
        page.contains(">Paused<") && html::form(&page, "Resume").is_some(),
        "{page}"
    );
    for name in ["Ready", "Scheduled", "Leased", "Dead"] {
        let count = name.to_lowercase();
        let (_, tile) = page.split_once(&format!("data-count=\"{count}\">")).unwrap();
        let (_, label) = tile.split_once("<span class=\"quiet\">").unwrap();
        assert!(label.starts_with(name), "the tile of {count} is called {label}");
    }
    assert_described(
        &page,
        &[
            ("Done", "1,006<"),
            ("Discarded", "1,007<"),
            ("Cancelled", "1,008<"),
            ("Leases that have expired", "1,004<"),
            ("Oldest ready job", "9s<"),
            ("Next scheduled job", "in 10s<"),
        ],
    );
}

#[tokio::test]
async fn each_live_count_has_its_name() {
    let site = site(StateDetail::Ready).await;

    let mut events = live::events(&site, "/live?queue=emails").await;

    let counts = live::next_counts(&mut events).await;
    let counts: Value = serde_json::from_str(&counts).unwrap();
    for (count, value) in [
        ("ready", "1,001"),
        ("scheduled", "1,002"),
        ("leased", "1,003"),
        ("dead", "1,005"),
    ] {
        assert_eq!(counts["emails"][count], value, "{count} in {counts}");
    }
}

#[tokio::test]
async fn each_figure_of_a_batch_has_its_place() {
    let site = site(StateDetail::Ready).await;

    let page = site.page("/queue/emails/batch/nightly").await;

    let [created, sealed, completed] = [11, 12, 13].map(written);
    assert_described(
        &page,
        &[
            ("State", "failed<"),
            ("Pieces", "21<"),
            ("Done", "2<"),
            ("Failed", "3<"),
            ("Dropped", "5<"),
            ("Leased", "4<"),
            ("Waiting", "7<"),
            ("Priority", "8<"),
            ("Pieces leased at once", "at most 6<"),
            ("Created", &created),
            ("Sealed", &sealed),
            ("Completed", &completed),
        ],
    );
    assert!(page.contains("10 of 21 pieces ended"), "{page}");
    assert!(html::form(&page, "Cancel batch").is_none(), "it has ended: {page}");
}

/// Asserts that the cells of the row behind this head begin with these parts.
#[track_caller]
fn assert_cells(page: &str, head: &str, parts: &[&str]) {
    let row = page.split(&format!(">{head}</th>")).nth(1).expect("it has a row");
    let row = row.split("</tr>").next().unwrap_or_default();
    assert_eq!(row.matches("<td").count(), parts.len(), "the cells of {head} in {row}");
    for (cell, part) in row.split("<td").skip(1).zip(parts) {
        let (_, content) = cell.split_once('>').expect("the cell has content");
        assert!(content.starts_with(part), "{content} begins with {part}, in {row}");
    }
}

#[tokio::test]
async fn each_property_of_a_worker_has_its_cell() {
    let site = site(StateDetail::Ready).await;

    let page = site.page("/queue/emails/workers").await;

    let since = written(13);
    let parts = ["mail-7<", "4711<", "12<", &since, "<span class=\"quiet\">nothing<"];
    assert_cells(&page, "mail-7:4711:nonce", &parts);
}

#[tokio::test]
async fn each_property_of_a_schedule_has_its_cell() {
    let site = site(StateDetail::Ready).await;

    let page = site.page("/queue/emails/schedules").await;

    let [last, next] = ["05", "06"]
        .map(|hour| format!("<time datetime=\"1970-01-01T{hour}:00:00Z\">"));
    let parts = ["0 * * * * UTC<", "last<", &last, &next, "the report<"];
    assert_cells(&page, "nightly", &parts);
}

/// The buttons of the page of a job.
const BUTTONS: [&str; 4] = ["Run now", "Cancel", "Retry", "Purge"];

/// Each state with how it is told, and with the buttons that it allows.
fn states() -> [(StateDetail, String, &'static [&'static str]); 5] {
    let (leader, delay) = (JobId::new("leader").unwrap(), Duration::from_secs(14));
    let worker = WorkerId::new("mail-7:4711:nonce").unwrap();
    let reason = "it gave up".to_owned();
    [
        (
            StateDetail::Ready,
            format!("ready: ready, pushed {}", written(22)),
            &["Cancel"],
        ),
        (
            StateDetail::Scheduled { due: at(15) },
            format!("scheduled: due {}", written(15)),
            &["Run now", "Cancel"],
        ),
        (
            StateDetail::Following { leader, delay },
            "scheduled: follows <a href=\"/queue/emails/job?id=leader\">".to_owned(),
            &["Cancel"],
        ),
        (
            StateDetail::Leased { worker, since: at(16), until: at(17) },
            format!("leased: held by mail-7:4711:nonce since {}", written(16)),
            &["Cancel"],
        ),
        (
            StateDetail::Dead { reason, since: at(18) },
            format!("dead: dead since {}", written(18)),
            &["Retry", "Purge"],
        ),
    ]
}

#[tokio::test]
async fn each_property_of_a_job_has_its_place() {
    for (detail, state, allowed) in states() {
        let site = site(detail.clone()).await;

        let page = site.page("/queue/emails/job?id=job-1").await;

        let [pushed, expires] = [22, 21].map(written);
        assert_described(
            &page,
            &[
                ("State", &state),
                ("Attempt", "2 of 7<"),
                ("Priority", "8<"),
                ("Pushed", &pushed),
                ("Expires", &expires),
                ("Unique key", "the-key<"),
                ("Lease", "23s<"),
                ("Result kept for", "24s<"),
                ("Batch", "<a href=\"/queue/emails/batch/nightly\">nightly<"),
                ("Header tenant", "acme<"),
                ("Followers", "<a href=\"/queue/emails/job?id=follower\">follower<"),
            ],
        );
        for part in ["Error of the last attempt", ">disk full<", ">the payload<"] {
            assert!(page.contains(part), "{part} of {detail:?}, in {page}");
        }
        match detail {
            StateDetail::Following { .. } => {
                assert_described(&page, &[("Delay after the leader", "14s<")]);
            }
            StateDetail::Leased { .. } => {
                let until = format!("lease until {}", written(17));
                assert!(page.contains(&until), "{until} in {page}");
            }
            StateDetail::Dead { .. } => {
                assert!(page.contains("Why it is dead</h2>"), "{page}");
                assert!(page.contains(">it gave up<"), "{page}");
            }
            _ => {}
        }
        let buttons = BUTTONS.into_iter().filter(|it| html::form(&page, it).is_some());
        assert_eq!(buttons.collect::<Vec<_>>(), allowed, "the buttons in {page}");
    }
}
