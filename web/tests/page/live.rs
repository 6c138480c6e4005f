//! Live counts.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use relq::{NewJob, Queue, QueueName, error::BoxError};
use relq_web::{Access, QueueSource, WebPage};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    net::TcpStream,
    time::timeout,
};

use crate::{
    client::Request,
    on_each_store,
    site::{Site, serve},
};

const LIMIT: Duration = Duration::from_secs(60);

pub(crate) type Events = Lines<BufReader<TcpStream>>;

pub(crate) async fn events(site: &Site, path: &str) -> Events {
    events_at(site.address, path).await
}

async fn events_at(address: SocketAddr, path: &str) -> Events {
    BufReader::new(Request::get(path).open(address).await).lines()
}

/// The counts of the next event.
pub(crate) async fn next_counts(events: &mut Events) -> String {
    let reading = async {
        loop {
            let line = events.next_line().await.unwrap().expect("the stream goes on");
            if let Some(counts) = line.strip_prefix("data: ") {
                return counts.to_owned();
            }
        }
    };
    timeout(LIMIT, reading).await.expect("an event arrives in time")
}

/// Reads events until one contains `text`.
async fn wait_for(events: &mut Events, text: &str) {
    let reading = async {
        while let Some(line) = events.next_line().await.unwrap() {
            if line.starts_with("data: ") && line.contains(text) {
                return;
            }
        }
        panic!("the stream has ended before {text}");
    };
    timeout(LIMIT, reading).await.unwrap_or_else(|_| panic!("no {text} in time"));
}

on_each_store! {
    async fn counts_follow_the_store(site) {
        let mut all = events(site, "/live").await;
        let mut one = events(site, "/live?queue=emails").await;
        wait_for(&mut all, r#""ready":"0""#).await;

        site.push("a", NewJob::new("x")).await;

        wait_for(&mut all, r#"{"emails":{"dead":"0","leased":"0","rate":"#).await;
        wait_for(&mut all, r#""ready":"1""#).await;
        wait_for(&mut one, r#""ready":"1""#).await;
        site.claim().await;
        wait_for(&mut one, r#""leased":"1""#).await;
    }
}

#[tokio::test]
async fn a_stream_of_an_unknown_queue_has_no_counts() {
    let site = Site::sqlite().await;

    let mut stream = events(&site, "/live?queue=invoices").await;

    wait_for(&mut stream, "{}").await;
}

/// The page must not call counts live that nobody can read.
#[tokio::test]
async fn a_store_that_is_down_has_no_counts() {
    let mut site = Site::redis("zset").await;
    let mut one = events(&site, "/live?queue=emails").await;
    wait_for(&mut one, r#""ready":"0""#).await;

    site.server.as_mut().unwrap().kill();
    wait_for(&mut one, r#"{"emails":{"error":""#).await;
    site.server.as_mut().unwrap().restart();

    wait_for(&mut one, r#""ready":"0""#).await;
}

/// A queue that can be opened, but not listed while `is_down`.
#[derive(Debug)]
struct Unlisted {
    queue: Arc<dyn Queue>,
    is_down: Arc<AtomicBool>,
}

#[relq_conformance::async_trait]
impl QueueSource for Unlisted {
    async fn names(&self) -> Result<Vec<QueueName>, BoxError> {
        if self.is_down.load(Ordering::Relaxed) {
            return Err("no route to the store".into());
        }
        Ok(vec![QueueName::new("emails")?])
    }

    async fn open(&self, _: &QueueName) -> Result<Option<Arc<dyn Queue>>, BoxError> {
        Ok(Some(self.queue.clone()))
    }
}

/// The counts of the last list that was read are outdated.
#[tokio::test]
async fn queues_that_cannot_be_listed_have_no_counts() {
    let is_down = Arc::new(AtomicBool::new(false));
    let queue = Site::sqlite().await.queue.clone();
    let source = Unlisted { queue, is_down: is_down.clone() };
    let page = WebPage::new(source, Access::checked_by_caller());
    let (address, serving) =
        serve(page.sample_every(Duration::from_millis(20)).router()).await;
    let mut all = events_at(address, "/live").await;
    wait_for(&mut all, r#""ready":"0""#).await;

    is_down.store(true, Ordering::Relaxed);
    wait_for(&mut all, r#"{"emails":{"error":"no route to the store"}}"#).await;
    is_down.store(false, Ordering::Relaxed);

    wait_for(&mut all, r#""ready":"0""#).await;
    serving.abort();
}

#[tokio::test]
async fn a_page_of_queues_that_cannot_be_listed_says_why() {
    let queue = Site::sqlite().await.queue.clone();
    let source = Unlisted { queue, is_down: Arc::new(AtomicBool::new(true)) };
    let page = WebPage::new(source, Access::checked_by_caller());
    let (address, serving) = serve(page.router()).await;

    let answer = Request::get("/").send(address).await;

    assert_eq!(answer.status, 502, "{}", answer.body);
    assert!(answer.body.contains("no route to the store"), "{}", answer.body);
    serving.abort();
}

/// The streams are bounded, and a place is free again when a stream is closed.
#[tokio::test]
async fn the_streams_are_bounded() {
    let site = Site::sqlite().await;
    let mut streams = Vec::new();
    for _ in 0..64 {
        let mut stream = events(&site, "/live").await;
        wait_for(&mut stream, "emails").await;
        streams.push(stream);
    }

    let refused = site.get("/live").await;
    assert_eq!(refused.status, 503, "{}", refused.body);
    streams.pop();

    let again = async {
        loop {
            let mut stream = events(&site, "/live").await;
            let status = stream.next_line().await.unwrap().unwrap();
            if status.contains("200") {
                return;
            }
        }
    };
    timeout(LIMIT, again).await.expect("a closed stream makes room");
}

/// A server that shuts down gracefully does not wait for the streams.
#[tokio::test]
async fn the_streams_end_with_the_page() {
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let site = Site::with(|page| {
        page.stop_on(async move {
            stopped.await.unwrap();
        })
    })
    .await;
    let mut stream = events(&site, "/live").await;
    wait_for(&mut stream, "emails").await;

    stop.send(()).unwrap();

    let ended = async { while stream.next_line().await.unwrap().is_some() {} };
    timeout(LIMIT, ended).await.expect("the stream ends");
}
