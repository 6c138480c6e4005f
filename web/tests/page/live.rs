//! Live counts.

use std::time::Duration;

use relq::NewJob;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    net::TcpStream,
    time::timeout,
};

use crate::{client::Request, on_each_store, site::Site};

const LIMIT: Duration = Duration::from_secs(60);

type Events = Lines<BufReader<TcpStream>>;

async fn events(site: &Site, path: &str) -> Events {
    BufReader::new(Request::get(path).open(site.address).await).lines()
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
