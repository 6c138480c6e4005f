//! Runs the handlers of the example `webhook_dispatcher` against a local HTTP server.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../examples/webhook_dispatcher.rs"]
#[allow(dead_code, reason = "the test has a main function of its own")]
mod example;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    time::Duration,
};

use axum::{Router, extract::State, http::HeaderMap, http::StatusCode, routing::post};
use example::{Event, Hooks, PostWebhook};
use relq::{
    testing::{Outcome, TestQueue},
    worker::Enqueue as _,
};
use tokio::net::TcpListener;

/// A request that a receiver got.
struct Request {
    path: &'static str,
    id: String,
    body: String,
}

/// The requests of all receivers.
#[derive(Clone, Default)]
struct Received(Arc<Mutex<Vec<Request>>>);

impl Received {
    fn add(&self, path: &'static str, headers: &HeaderMap, body: String) {
        assert_eq!(headers["webhook-event"], "order.paid");
        assert_eq!(headers["content-type"], "application/json");
        let id = headers["webhook-id"].to_str().unwrap().to_owned();
        self.0.lock().unwrap().push(Request { path, id, body });
    }

    /// The ids of the requests to one receiver.
    fn ids(&self, path: &str) -> Vec<String> {
        let received = self.0.lock().unwrap();
        let at_path = received.iter().filter(|request| request.path == path);
        at_path.map(|request| request.id.clone()).collect()
    }
}

/// Starts receivers: `/good` accepts, `/busy` is busy once, and `/gone` refuses. Returns
/// their address.
async fn receivers(received: Received) -> String {
    let busy = Arc::new(AtomicU32::new(0));
    let receiver = |path: &'static str, status: fn(u32) -> StatusCode| {
        let busy = Arc::clone(&busy);
        post(async move |State(received): State<Received>, headers: HeaderMap, body| {
            received.add(path, &headers, body);
            status(busy.fetch_add(u32::from(path == "/busy"), SeqCst))
        })
    };
    let busy_once = |before| match before {
        0 => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::NO_CONTENT,
    };
    let router = Router::new()
        .route("/good", receiver("/good", |_| StatusCode::OK))
        .route("/busy", receiver("/busy", busy_once))
        .route("/gone", receiver("/gone", |_| StatusCode::GONE))
        .with_state(received);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(axum::serve(listener, router).into_future());
    format!("http://{address}")
}

fn hooks(of: &[(&str, String)]) -> Hooks {
    let hooks: BTreeMap<_, _> =
        of.iter().map(|(id, url)| ((*id).to_owned(), url.clone())).collect();
    Hooks::from([("order.paid".to_owned(), hooks)])
}

fn paid() -> Event {
    Event { name: "order.paid".into(), body: r#"{"order":7}"#.into() }
}

#[tokio::test]
async fn each_hook_gets_the_event_with_retries_of_its_own() {
    let received = Received::default();
    let server = receivers(received.clone()).await;
    let of = ["busy", "gone", "good"].map(|id| (id, format!("{server}/{id}")));
    let queue = TestQueue::new();
    let router = example::router(queue.queue(), hooks(&of));
    queue.queue().enqueue(&paid()).await.unwrap();
    let other = Event { name: "order.shipped".into(), body: String::new() };
    queue.queue().enqueue(&other).await.unwrap();

    let first = queue.drain(router.clone()).await;
    queue.advance(Duration::from_secs(10));
    let second = queue.drain(router).await;

    assert_eq!(first.ran.len(), 5, "two events and three requests: {first:?}");
    second.assert_all_done();
    assert_eq!(second.ran.len(), 1, "{second:?}");
    assert_eq!(received.ids("/good").len(), 1);
    let busy = received.ids("/busy");
    assert_eq!(busy, [busy[0].clone(), busy[0].clone()], "one id for both attempts");
    assert_eq!(received.ids("/gone").len(), 1, "a refused request is not repeated");
    let dead = queue.dead();
    assert_eq!(dead.len(), 1);
    let error = dead[0].last_error.as_deref().unwrap();
    assert_eq!(error, format!("{server}/gone: 410 Gone"));
    assert_eq!(received.0.lock().unwrap()[0].body, r#"{"order":7}"#);
}

/// A server that no one listens on is one that may come back.
#[tokio::test]
async fn an_unreachable_hook_is_retried_until_its_last_attempt() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let queue = TestQueue::new();
    let router = example::router(queue.queue(), Hooks::new());
    queue.queue().enqueue(&PostWebhook { url, event: paid() }).await.unwrap();

    let mut attempts = Vec::new();
    while !queue.waiting().is_empty() {
        attempts.extend(queue.drain(router.clone()).await.ran);
        queue.advance(Duration::from_secs(3600));
    }

    assert_eq!(attempts.len(), 8);
    assert!(matches!(attempts[0].outcome, Outcome::Retried { .. }), "{attempts:?}");
    assert!(matches!(attempts[7].outcome, Outcome::Buried { .. }), "{attempts:?}");
}

/// R4: the jobs of an event that is handled twice are pushed once.
#[tokio::test]
async fn an_event_that_is_handled_again_posts_once() {
    let received = Received::default();
    let server = receivers(received.clone()).await;
    let queue = TestQueue::new();
    let router =
        example::router(queue.queue(), hooks(&[("good", format!("{server}/good"))]));
    queue.queue().enqueue(&paid()).await.unwrap();
    // A worker that dies after it has pushed, and before it has settled.
    let id = relq::WorkerId::new("dies").unwrap();
    let ask = relq::ClaimRequest::new(id, Duration::from_secs(30));
    let claimed = relq::ReliableQueueExt::claim_one(&*queue.queue(), &ask).await;
    let job = relq::worker::JobContext::new(claimed.unwrap().unwrap());
    relq::worker::Handler::handle(&router, job).await.unwrap();

    queue.drain(router.clone()).await.assert_all_done();
    queue.advance(Duration::from_secs(30));
    let again = queue.drain(router).await;

    again.assert_all_done();
    assert_eq!((again.ran.len(), again.ran[0].attempt), (1, 2));
    assert_eq!(received.ids("/good").len(), 1);
}
