//! A job is found on a backend without an index of jobs, however long the search takes.

use std::{sync::Arc, time::Duration};

use relq::{
    Error, JobId, NewJob, QueueName,
    capabilities::{Capabilities, Capability},
    operator::{Page, PeekRequest},
};
use relq_conformance::{
    async_trait,
    overrides::{Override, Right},
};

use crate::{html, site::Site};

/// A queue without an index, each of whose pages takes longer than one request searches.
struct Slow(Capabilities);

#[async_trait]
impl Override for Slow {
    fn capabilities<'a>(&'a self, _: &'a Right) -> &'a Capabilities {
        &self.0
    }

    async fn peek(&self, right: &Right, ask: &PeekRequest) -> Result<Page, Error> {
        tokio::time::sleep(Duration::from_millis(40)).await;
        right.peek(ask).await
    }
}

/// A page of such a queue, which has a leased, a dead and a scheduled job, and more ready
/// ones than two calls read.
async fn site() -> Site {
    let name = QueueName::new("emails").unwrap();
    let queue = relq::connect("sqlite::memory:", &name).await.unwrap();
    let mut capabilities = queue.capabilities().clone();
    capabilities.supported.to_mut().retain(|it| *it != Capability::Inspect);
    let site = Site::overridden(Arc::new(Slow(capabilities))).await;
    site.bury("dead", "broken").await;
    site.push("leased", NewJob::new("x")).await;
    site.claim().await;
    site.push("scheduled", NewJob::new("x").delay(Duration::from_secs(600))).await;
    let id = |at| JobId::new(format!("job-{at:03}")).unwrap();
    let ready: Vec<_> = (0..250).map(|at| NewJob::new("x").id(id(at))).collect();
    site.queue.push(&ready, None).await.unwrap();
    site
}

/// Looks for a job, and goes on with the search as long as the pages offer it. Returns the
/// last page and how many there were.
async fn search(site: &Site, id: &str) -> (String, u32) {
    let mut page = site.page(&format!("/queue/emails/job?id={id}")).await;
    let mut pages = 1;
    while let Some(next) = html::link(&page, "Continue the search") {
        assert!(pages < 20, "the search for {id} does not end: {page}");
        page = site.page(&next).await;
        pages += 1;
    }
    (page, pages)
}

#[tokio::test]
async fn a_search_goes_on_until_the_job_is_found() {
    let site = site().await;
    for (id, state) in [
        ("job-000", "ready"),
        ("job-150", "ready"),
        ("job-249", "ready"),
        ("leased", "leased"),
        ("scheduled", "scheduled"),
        ("dead", "dead"),
    ] {
        let (page, pages) = search(&site, id).await;

        let told = format!("<dt>State</dt><dd>{state}: ");
        assert!(page.contains(&told), "{id} is {state}, after {pages} pages: {page}");
        assert_eq!(pages > 1, id != "job-000", "the pages of the search for {id}");
    }
    let (page, _) = search(&site, "unknown").await;
    assert!(page.contains("No stored job has this id."), "{page}");
}

/// The link of a list names the page on which the job was, so that it need not be searched
/// for.
#[tokio::test]
async fn a_listed_job_is_found_where_it_was_listed() {
    let site = site().await;
    let mut list = site.page("/queue/emails/jobs/ready").await;
    while html::link(&list, "job-249").is_none() {
        let next = html::link(&list, "Next page").expect("the job is on a later page");
        list = site.page(&next).await;
    }

    let page = site.page(&html::link(&list, "job-249").unwrap()).await;

    assert!(page.contains("<dt>State</dt><dd>ready: "), "it is found at once: {page}");
}
