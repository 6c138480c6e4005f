//! The properties of queues and jobs that the pages show, and those that they hide.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use relq::{
    ClaimRequest, Disposition, Error, JobId, NewJob, QueueName, Settlement, WorkerId,
    batch::{BatchId, NewBatch},
    operator::{JobLookup, JobRecord, JobView, StateDetail, WorkerReport},
    results::Reported,
    schedule::ScheduleName,
    unique::UniqueKey,
};
use relq_conformance::{
    async_trait,
    overrides::{Override, Right},
};
use relq_web::{Access, FixedQueues, Redaction, WebPage};

use crate::{
    client::Request,
    html, on_each_store,
    site::{Site, serve},
};

const HOSTILE: &str = "<script>alert('x')</script>\"'&<img src=x onerror=alert(1)>";

on_each_store! {
    /// The text of a job stays text, wherever it is shown.
    async fn a_hostile_job_stays_text(site) {
        let job = NewJob::new(HOSTILE)
            .header(HOSTILE, HOSTILE)
            .unique(UniqueKey::new(HOSTILE).unwrap());
        site.bury("dead", HOSTILE).await;
        site.push(HOSTILE, job).await;
        site.push("later", NewJob::new(HOSTILE).delay(Duration::from_secs(60))).await;
        let ready = site.page("/queue/emails/jobs/ready").await;
        let hostile = html::addresses(&ready)
            .into_iter()
            .find(|link| link.contains("/job?id=%3Cscript"));
        for path in [
            &hostile.expect("the job has a link")[..],
            "/",
            "/queue/emails/jobs/ready",
            "/queue/emails/jobs/scheduled",
            "/queue/emails/jobs/dead",
            "/queue/emails/jobs/ready?text=%22%3E%3Cscript%3E",
            "/queue/emails/job?id=dead",
            "/queue/emails/job?id=%3Cscript%3E",
            "/queue/emails/dead",
            "/queue/emails/confirm/cancel?id=%3Cscript%3E",
            "/queue/emails/confirm/purge-group?error=%22%3Cscript%3E%22",
            "/?name=%22%3E%3Cscript%3E",
        ] {
            let page = site.page(path).await;
            assert!(!page.contains("<script>"), "{path}: {page}");
            assert!(!page.contains("<img"), "{path}: {page}");
        }
        let missing = site.get("/queue/%3Cscript%3Ealert(1)%3C%2Fscript%3E").await;
        assert!(!missing.body.contains("<script>"), "{}", missing.body);
    }

    async fn a_job_is_shown_whole(site) {
        let job = NewJob::new(r#"{"to":"anna@example.org"}"#)
            .header("kind", "welcome")
            .unique(UniqueKey::new("user-7").unwrap())
            .delay(Duration::from_secs(3600));
        site.push("a/b?c", job).await;
        let list = site.page("/queue/emails/jobs/scheduled").await;

        let page = site.page(&html::link(&list, "a/b?c").unwrap()).await;

        for part in [
            "Job a/b?c",
            "&quot;to&quot;: &quot;anna@example.org&quot;",
            "<dt>Header kind</dt><dd>welcome</dd>",
            "<dd>user-7</dd>",
            "0 of 25",
            "scheduled: due",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
    }

    async fn json_is_indented_and_not_changed(site) {
        let job = NewJob::new(r#"{"id":123456789012345678901,"b":1,"a":2.50,"a":3}"#);
        site.push("a", job).await;

        let page = site.page("/queue/emails/job?id=a").await;

        let members = [("id", "123456789012345678901"), ("b", "1"), ("a", "2.50"), ("a", "3")];
        let lines = members.map(|(name, value)| format!("  &quot;{name}&quot;: {value}"));
        assert!(page.contains(&lines.join(",\n")), "{page}");
    }

    async fn a_payload_that_is_not_text_is_escaped(site) {
        site.push("a", NewJob::new(&b"\xff\x00<b>"[..])).await;

        let page = site.page("/queue/emails/jobs/ready").await;

        assert!(page.contains(r"\xff\x00&lt;b&gt;"), "{page}");
    }

    async fn every_job_is_on_one_page(site) {
        for at in 0..120 {
            site.push(&format!("job-{at:03}"), NewJob::new("x")).await;
        }
        for (order, first) in [("newest", "job-119"), ("served", "job-000")] {
            let mut seen = Vec::new();
            let mut next = Some(format!("/queue/emails/jobs/ready?order={order}"));
            while let Some(path) = next {
                let page = site.page(&path).await;
                seen.extend((0..120).map(|at| format!("job-{at:03}")).filter(|id| {
                    page.contains(&format!(">{id}</a>"))
                }));
                next = html::link(&page, "Next page");
                assert!(seen.len() > 1 && seen.len() <= 120, "{seen:?}");
                let begins = page.split(">job-").nth(1).unwrap();
                if seen.len() <= 50 {
                    assert!(begins.starts_with(&first[4..]), "{begins}");
                }
            }
            seen.sort();
            seen.dedup();
            assert_eq!(seen.len(), 120, "{order}");
        }
    }

    /// Each further page of a search looks in the same places.
    async fn a_search_continues_where_it_ended(site) {
        for at in 0..240 {
            let job = match at % 2 {
                0 => NewJob::new("wanted"),
                _ => NewJob::new("other").header("kind", "wanted"),
            };
            site.push(&format!("job-{at:03}"), job).await;
        }
        for (places, wanted, other) in
            [("&in=payload", 120, 0), ("&in=headers", 0, 120), ("&in=errors", 0, 0), ("", 120, 120)]
        {
            let first = format!("/queue/emails/jobs/ready?text=wanted{places}");
            let found = payloads_of_search(site, &first).await;

            let count = |text: &str| found.iter().filter(|payload| *payload == text).count();
            let counts = (count("wanted"), count("other"));
            assert_eq!(counts, (wanted, other), "the payloads and the headers by {first}");
        }
    }

    /// The link of a group finds its jobs by their error, and no job by its payload.
    async fn a_group_of_dead_letters_leads_to_its_jobs(site) {
        for (id, payload, error) in [
            ("a", "x", "timeout after 5 s"),
            ("b", "x", "timeout after 7 s"),
            ("c", "timeout after 5 s", "no such user"),
        ] {
            site.push(id, NewJob::new(payload)).await;
            site.bury_next(error).await;
        }
        let groups = site.page("/queue/emails/dead").await;

        let link = html::link(&groups, "timeout after # s").expect("the group has a link");
        let list = site.page(&link).await;

        let listed = ["a", "b", "c"].map(|id| html::link(&list, id).is_some());
        assert_eq!(listed, [true, true, false], "{list}");
    }

    async fn the_page_of_a_job_that_has_ended_says_how(site) {
        let hour = Duration::from_secs(3600);
        site.push("done", NewJob::new("x").keep_result(hour)).await;
        let held = site.claim().await;
        let done = Disposition::DoneWith { result: "the result".into() };
        site.queue.settle(&[Settlement::new(held.receipt, done)]).await.unwrap();
        let leader = JobId::new("leader").unwrap();
        site.push("leader", NewJob::new("x")).await;
        let follower = NewJob::new("x").after(leader.clone()).keep_result(hour);
        site.push("follower", follower).await;
        site.queue.cancel(&leader).await.unwrap();
        site.push("running", NewJob::new("x").keep_result(hour)).await;
        let held = site.claim().await;
        let results = site.queue.result_queue().unwrap();
        results.report_progress(&held.receipt, b"the progress").await.unwrap();

        let not_done = "The job has ended and is not done";
        for (id, told) in [
            ("done", &["The job is done.", "<h2>Result</h2>", ">the result<"][..]),
            ("leader", &[not_done]),
            ("follower", &[not_done, "It was cancelled because leader was not done."]),
            ("running", &["leased: held by", "<h2>Progress</h2>", ">the progress<"]),
        ] {
            let page = site.page(&format!("/queue/emails/job?id={id}")).await;
            for part in told {
                assert!(page.contains(part), "{part} of {id}, in {page}");
            }
        }
    }

    async fn workers_are_listed_with_what_they_hold(site) {
        let idle = WorkerReport::new(
            WorkerId::new("far:9:idle").unwrap(),
            NonZeroU32::new(4).unwrap(),
        );
        site.queue.report_worker(&idle).await.unwrap();
        site.push("held", NewJob::new("x")).await;
        site.claim().await;

        let page = site.page("/queue/emails/workers").await;

        for part in ["far:9:idle", "host:7:test", "not reported", ">held</a>", "1 job"] {
            assert!(page.contains(part), "{part} in {page}");
        }
        let link = html::link(&page, "1 job").unwrap();
        assert!(site.page(&link).await.contains(">held</a>"));
    }

    /// Also those of a ready job, which has no index on some backends.
    async fn a_job_shows_its_followers(site) {
        site.push("leader", NewJob::new("x")).await;
        let follower = NewJob::new("y").after(JobId::new("leader").unwrap());
        site.push("follower", follower).await;

        let page = site.page("/queue/emails/job?id=leader").await;

        assert!(page.contains("Followers"), "{page}");
        assert!(html::link(&page, "follower").is_some(), "{page}");
    }

    async fn schedules_show_their_ticks(site) {
        let schedules = site.queue.schedule_queue().unwrap();
        let hourly = relq_schedule::Cron::new("0 * * * *").unwrap();
        let spec = relq_schedule::ScheduleSpec::new(hourly, "the report").unwrap();
        let name = ScheduleName::new("hourly").unwrap();
        schedules.put_schedule(&name, &spec.to_definition()).await.unwrap();
        let broken = ScheduleName::new("broken").unwrap();
        schedules.put_schedule(&broken, b"<script>").await.unwrap();

        let page = site.page("/queue/emails/schedules").await;

        for part in ["hourly", "0 * * * *", "the report", "broken"] {
            assert!(page.contains(part), "{part} in {page}");
        }
    }

    async fn the_overview_counts_each_state(site) {
        site.push("a", NewJob::new("x")).await;
        site.bury("b", "broken").await;
        site.queue.pause().await.unwrap();
        let count = |state, value| {
            format!("data-queue=\"emails\" data-count=\"{state}\">{value}<")
        };
        let began = std::time::Instant::now();
        loop {
            let page = site.page("/").await;
            let states = [count("ready", 1), count("dead", 1), "paused".to_owned()];
            if states.iter().all(|state| page.contains(state)) {
                assert!(page.contains("<svg"), "{page}");
                return;
            }
            assert!(began.elapsed().as_secs() < 60, "{page}");
        }
    }
}

/// Follows a search from its first page to its end. Returns the payloads of all the jobs that
/// it shows.
async fn payloads_of_search(site: &Site, first: &str) -> Vec<String> {
    let (mut found, mut next) = (Vec::new(), Some(first.to_owned()));
    while let Some(path) = next {
        let page = site.page(&path).await;
        let cells = page.split("<td class=\"text wide\">").skip(1);
        found.extend(cells.map(|cell| cell.split('<').next().unwrap().to_owned()));
        next = html::link(&page, "Continue the search");
    }
    found
}

/// Each further page of a search shows the jobs of the same batch.
#[tokio::test]
async fn a_search_in_a_batch_stays_in_it() {
    let site = Site::sqlite().await;
    let plain = vec![NewJob::new("plain"); 120];
    site.queue.push(&plain, None).await.unwrap();
    let (batches, id) = (site.queue.batch_queue().unwrap(), BatchId::new("b").unwrap());
    batches.create(&NewBatch::new(id.clone())).await.unwrap();
    batches.add(&id, &vec![NewJob::new("piece"); 240], None).await.unwrap();

    let found = payloads_of_search(&site, "/queue/emails/jobs/ready?batch=b").await;

    assert_eq!(found, vec!["piece"; 240]);
}

/// Each further page of a search shows the jobs of the same worker.
#[tokio::test]
async fn a_search_for_the_jobs_of_a_worker_stays_with_it() {
    let site = Site::sqlite().await;
    for (worker, payload, jobs) in [("mine", "held", 240), ("other", "others", 120)] {
        site.queue.push(&vec![NewJob::new(payload); jobs], None).await.unwrap();
        let worker = WorkerId::new(worker).unwrap();
        let most = NonZeroU32::new(1000).unwrap();
        let ask = ClaimRequest::new(worker, Duration::from_secs(600)).max(most);
        assert_eq!(site.queue.claim(&ask).await.unwrap().len(), jobs);
    }

    let found =
        payloads_of_search(&site, "/queue/emails/jobs/leased?worker=mine").await;

    assert_eq!(found, vec!["held"; 240]);
}

/// The pages that show something of the jobs of [`fill_with_secrets`].
const PAGES_OF_SECRETS: [&str; 12] = [
    "/queue/emails/job?id=done",
    "/queue/emails/job?id=held",
    "/queue/emails/batch/b",
    "/queue/emails/schedules",
    "/queue/emails/jobs/ready",
    "/queue/emails/jobs/leased",
    "/queue/emails/jobs/dead",
    "/queue/emails/job?id=ready",
    "/queue/emails/job?id=text",
    "/queue/emails/job?id=dead",
    "/queue/emails/dead",
    "/queue/emails/confirm/retry?id=dead",
];

/// Jobs, a batch and a schedule that have secrets wherever they can have one.
async fn fill_with_secrets(site: &Site) {
    let job = || {
        NewJob::new(r#"{"user":{"email":"secret-1","name":"anna"}}"#)
            .header("session", "secret-2")
            .header("authorization", "secret-3")
            .header("kind", "welcome")
    };
    site.push("dead", job()).await;
    let held = site.claim().await;
    relq::ReliableQueueExt::bury(&*site.queue, &held.receipt, "secret-4")
        .await
        .unwrap();
    let secret = r#"{"user":{"email":"secret-5"}}"#;
    let kept = NewJob::new("plain").keep_result(Duration::from_secs(600));
    site.push("done", kept).await;
    let held = site.claim().await;
    let done = Disposition::DoneWith { result: secret.into() };
    site.queue.settle(&[Settlement::new(held.receipt, done)]).await.unwrap();
    let kept = NewJob::new("{}").keep_result(Duration::from_secs(600));
    site.push("held", kept).await;
    let held = site.claim().await;
    let progress = br#"{"user":{"email":"secret-6","name":"bert"}}"#;
    let results = site.queue.result_queue().unwrap();
    let reported = results.report_progress(&held.receipt, progress).await.unwrap();
    assert_eq!(reported, Reported::Stored);
    let metadata = r#"{"user":{"email":"secret-7","name":"carl"}}"#;
    let batch = NewBatch::new(BatchId::new("b").unwrap()).metadata(metadata);
    site.queue.batch_queue().unwrap().create(&batch).await.unwrap();
    let schedules = site.queue.schedule_queue().unwrap();
    let hourly = relq_schedule::Cron::new("0 * * * *").unwrap();
    let spec = relq_schedule::ScheduleSpec::new(hourly, job()).unwrap();
    let name = ScheduleName::new("hourly").unwrap();
    schedules.put_schedule(&name, &spec.to_definition()).await.unwrap();
    site.push("ready", job()).await;
    site.push("text", NewJob::new("secret-8 is no JSON")).await;
}

/// A page shows none of the words, and a search does not tell them.
async fn assert_hidden(site: &Site, words: &[&str]) {
    for path in PAGES_OF_SECRETS {
        let page = site.page(path).await;
        for word in words {
            assert!(!page.contains(word), "{word} on {path}: {page}");
        }
    }
    for word in words {
        for state in ["ready", "leased", "dead"] {
            let path = format!("/queue/emails/jobs/{state}?text={word}");
            assert!(site.page(&path).await.contains("No job to show"), "{path}");
        }
    }
}

#[tokio::test]
async fn what_the_rules_name_is_hidden_everywhere() {
    let rules = ["header:Session", "/user/email", "errors"];
    let redaction = Redaction::default().rules(rules).unwrap();
    let site = Site::with(|page| page.redact(redaction)).await;
    fill_with_secrets(&site).await;

    assert_hidden(&site, &["secret-"]).await;

    let page = site.page("/queue/emails/job?id=ready").await;
    assert!(page.contains("anna") && page.contains("welcome"), "{page}");
    assert!(site.page("/queue/emails/job?id=held").await.contains("bert"));
    assert!(site.page("/queue/emails/batch/b").await.contains("carl"));
    assert!(
        site.page("/queue/emails/jobs/ready?text=anna").await.contains(">ready</a>")
    );
}

/// Payloads, results, progress and metadata are hidden whole, and nothing else is.
#[tokio::test]
async fn payloads_are_hidden_everywhere() {
    let redaction = Redaction::default().rules(["payload"]).unwrap();
    let site = Site::with(|page| page.redact(redaction)).await;
    fill_with_secrets(&site).await;

    let in_payloads = [
        "secret-1", "secret-5", "secret-6", "secret-7", "secret-8", "anna", "bert",
        "carl",
    ];
    assert_hidden(&site, &in_payloads).await;

    let dead = site.page("/queue/emails/job?id=dead").await;
    assert!(dead.contains("welcome") && dead.contains("secret-4"), "{dead}");
}

/// The bytes of an entry that cannot be read hold its headers, also those that carry
/// credentials.
#[tokio::test]
async fn the_headers_of_an_entry_that_cannot_be_read_are_hidden() {
    let site = Site::redis("stream").await;
    let push: [&[u8]; 9] = [
        b"XADD",
        b"emails",
        b"*",
        b"job",
        b"{}",
        b"authorization",
        b"Bearer TOPSECRET",
        b"trace",
        b"\xff",
    ];
    site.server.as_ref().unwrap().command(&push);
    for state in ["ready", "dead"] {
        let list = site.page(&format!("/queue/emails/jobs/{state}")).await;
        let mut links = html::addresses(&list).into_iter();
        let link = links.find(|link| link.contains("/job?id=")).expect("it has a link");
        let job = site.page(&link).await;
        let search = format!("/queue/emails/jobs/{state}?text=TOPSECRET");

        for page in [list, job] {
            assert!(page.contains("it cannot be read"), "{state}: {page}");
            assert!(!page.contains("TOPSECRET"), "{state}: {page}");
        }
        assert!(site.page(&search).await.contains("No job to show"), "{state}");
        // The claim buries the entry.
        let worker = WorkerId::new("host:7:test").unwrap();
        let ask = ClaimRequest::new(worker, Duration::from_secs(600));
        assert!(site.queue.claim(&ask).await.unwrap().is_empty());
    }
}

/// Answers with jobs whose headers another client has pushed: a long one, or many.
struct LargeHeaders;

#[async_trait]
impl Override for LargeHeaders {
    async fn job(&self, _: &Right, job: &JobId) -> Result<JobLookup, Error> {
        let mut view = JobView::new(Some(job.clone()), "x", StateDetail::Ready);
        view.headers = match job.as_str() {
            "long" => [("long", "\u{1b}".repeat(2_000_000))].into_iter().collect(),
            _ => (0..50_000).map(|number| (format!("h{number}"), "v")).collect(),
        };
        Ok(JobLookup::Stored(Box::new(JobRecord::new(view, Vec::new()))))
    }
}

/// Another client may push headers of any size. A page of them must not be of any size: a
/// few visitors would use up the processor and the memory.
#[tokio::test]
async fn headers_of_any_size_are_cut() {
    let site = Site::overridden(Arc::new(LargeHeaders)).await;
    for (id, said) in
        [("long", "1 of 2,000,004 bytes"), ("many", "50,000 of 338,890 bytes")]
    {
        let page = site.page(&format!("/queue/emails/job?id={id}")).await;

        assert!(page.len() < 200_000, "{id}: {} bytes", page.len());
        assert!(page.matches("<dt>Header ").count() <= 200, "{page}");
        assert!(page.contains(said), "{said}: {page}");
    }
}

#[tokio::test]
async fn a_long_payload_is_cut_at_the_stated_length() {
    let site = Site::with(|page| page.max_shown(100)).await;
    site.push("a", NewJob::new("y".repeat(1000))).await;

    let page = site.page("/queue/emails/job?id=a").await;

    assert!(page.contains("The first 100 of 1,000 bytes of text"), "{page}");
    assert_eq!(page.matches("yyyyyyyyyy").count(), 10);
}

/// A name must not look like another one, and must not change the order of the text.
#[tokio::test]
async fn hidden_characters_of_a_queue_name_are_shown() {
    let name = QueueName::new("a\u{202e}b\u{200b}").unwrap();
    let queue = relq::connect("sqlite::memory:", &name).await.unwrap();
    let page =
        WebPage::new(FixedQueues::new([(name, queue)]), Access::checked_by_caller());
    let (address, serving) = serve(page.router()).await;
    let shown = r"a\u{202e}b\u{200b}";

    let overview = Request::get("/").send(address).await.page();
    let link = html::link(&overview, shown).expect("the row has a link");
    let queue = Request::get(link).send(address).await.page();

    assert!(queue.contains(&format!("<h1>{shown}</h1>")), "{queue}");
    assert!(
        queue.contains(&format!("<title>Queue – {shown} – relq</title>")),
        "{queue}"
    );
    for page in [&overview, &queue] {
        let text = html::text(page);
        assert!(text.contains(shown), "{text}");
        assert!(!text.contains(['\u{202e}', '\u{200b}']), "{text}");
    }
    let link = html::link(&queue, "Ready").expect("the queue has a list");
    Request::get(link).send(address).await.page();
    serving.abort();
}
