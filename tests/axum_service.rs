//! Runs the service of the example `axum_service`, and stops it with a signal. Signals go
//! to the whole process, so this test needs a test program of its own.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../examples/axum_service.rs"]
#[allow(dead_code, reason = "the test has a main function of its own")]
mod example;

use std::{
    process::Command,
    time::{Duration, Instant},
};

use relq::QueueName;
use tokio::{net::TcpListener, task::spawn_blocking, time::timeout};

const LIMIT: Duration = Duration::from_secs(60);

/// Pushes an email over HTTP. Returns the status and the body of the response.
fn post(url: &str, to: &str) -> (u16, String) {
    let config = ureq::Agent::config_builder().http_status_as_error(false).build();
    let request = ureq::Agent::from(config).post(format!("{url}/emails"));
    let request = request.content_type("application/json");
    let mut response = request.send(format!(r#"{{"to":"{to}"}}"#)).unwrap();
    let body = response.body_mut().read_to_string().unwrap();
    (response.status().as_u16(), body)
}

/// Reads the page of the metrics until it has a line.
fn wait_for_metric(url: &str, line: &str) {
    let began = Instant::now();
    loop {
        let mut response = ureq::get(format!("{url}/metrics")).call().unwrap();
        let page = response.body_mut().read_to_string().unwrap();
        if page.lines().any(|found| found == line) {
            return;
        }
        assert!(began.elapsed() < LIMIT, "{line} is not in:\n{page}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// R24: one signal stops the server and the worker, and the jobs that were accepted are
/// done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_signal_stops_the_server_and_the_worker() {
    let name = QueueName::new("emails").unwrap();
    let queue = relq::connect("sqlite::memory:", &name).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());

    let requests = spawn_blocking({
        let url = url.clone();
        move || {
            let (status, id) = post(&url, "anna@example.org");
            assert_eq!((status, id.is_empty()), (202, false), "{id}");
            assert_eq!(post(&url, "nowhere").0, 202);
            assert_eq!(post(&url, r#"", "to": ""#).0, 422, "not an email");
            let done = r#"kind="send-email",outcome="done"} 1"#;
            wait_for_metric(
                &url,
                &format!(r#"relq_jobs_ended_total{{queue="emails",{done}"#),
            );
            wait_for_metric(&url, r#"relq_jobs_buried_total{queue="emails"} 1"#);
            let pid = std::process::id().to_string();
            assert!(
                Command::new("kill").args(["-TERM", &pid]).status().unwrap().success()
            );
        }
    });
    let running = example::run(listener, queue.clone(), &name);
    let summary = timeout(LIMIT, running).await.unwrap().unwrap();

    requests.await.unwrap();
    assert_eq!((summary.done, summary.dead), (1, 1));
    assert_eq!(queue.stats().await.unwrap().unfinished(), 0);
    assert!(spawn_blocking(move || ureq::get(url).call()).await.unwrap().is_err());
}
