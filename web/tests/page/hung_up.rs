//! A visitor who closes the connection before the answer.

use std::{sync::Arc, time::Duration};

use relq::Error;
use relq_conformance::{
    async_trait,
    overrides::{Override, Right},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    sync::Notify,
    time::timeout,
};

use crate::{client::Request, log, site::Site};

const LIMIT: Duration = Duration::from_secs(60);

/// A queue whose pause ends when the test says so.
#[derive(Default)]
struct SlowPause {
    begun: Notify,
    may_end: Notify,
}

#[async_trait]
impl Override for SlowPause {
    async fn pause(&self, right: &Right) -> Result<(), Error> {
        self.begun.notify_one();
        self.may_end.notified().await;
        right.pause().await
    }
}

#[tokio::test]
async fn a_change_is_made_and_logged_although_its_visitor_hung_up() {
    log::keep();
    let slow = Arc::new(SlowPause::default());
    let site = Site::overridden(slow.clone()).await;
    let request = Request::post("/queue/emails/do/pause", "");
    let mut connection = request.open(site.address).await;
    timeout(LIMIT, slow.begun.notified()).await.expect("the change begins");

    connection.shutdown().await.unwrap();
    // The page closes its end when it has dropped the request.
    let closed = timeout(LIMIT, connection.read_to_end(&mut Vec::new())).await;
    let _ = closed.expect("the page notices that the visitor hung up");
    slow.may_end.notify_one();

    let line = async {
        loop {
            match log::line_with("a visitor of the web page changed a queue") {
                Some(line) => break line,
                None => tokio::task::yield_now().await,
            }
        }
    };
    let line = timeout(LIMIT, line).await.expect("the change is logged");
    assert!(line.contains("The queue is paused."), "{line}");
    assert!(site.queue.stats().await.unwrap().paused);
}
