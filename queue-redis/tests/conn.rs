//! Tests the connection against servers that are healthy, unreachable or silent.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

use relq_conformance::server::Server;
use relq_core::{
    Error,
    error::{Effect, Operation, RetryAdvice},
};
use relq_redis::{Conn, RedisConfig, command};

/// The connect timeout and the response timeout, which a healthy server meets even if the
/// machine stands still for a while.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The response timeout of the tests whose calls take longer.
const SHORT: Duration = Duration::from_secs(2);

fn config(url: &str) -> RedisConfig {
    let config = RedisConfig::new(url).unwrap().response_timeout(TIMEOUT).unwrap();
    config.connect_timeout(TIMEOUT).unwrap()
}

/// R21: when no server listens at the address, the error names the address and says
/// that nothing was done.
#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    let error = Conn::open("test", config("redis://127.0.0.1:1")).await.unwrap_err();

    assert!(matches!(error, Error::Unavailable { .. }), "{}", error.full_message());
    assert_eq!(error.effect(), Effect::No);
    assert_eq!(error.retry_advice(), RetryAdvice::Safe);
    assert!(error.full_message().contains("127.0.0.1:1"), "{}", error.full_message());
}

/// R21: a timeout that cannot be added to the present time is as good as none. Nothing
/// listens at the address, so no call waits for it.
#[tokio::test]
async fn a_timeout_without_end_is_taken() {
    let years = "?connect_timeout=500000000000years&response_timeout=500000000000years";
    let plain = "redis://127.0.0.1:1";
    let by_url = RedisConfig::new(&format!("{plain}{years}")).unwrap();
    let by_call = RedisConfig::new(plain).unwrap();
    let by_call = by_call.connect_timeout(Duration::MAX).unwrap();
    let by_call = by_call.response_timeout(Duration::MAX).unwrap();

    for config in [by_url, by_call] {
        let error = Conn::open("test", config).await.unwrap_err();

        assert!(matches!(error, Error::Unavailable { .. }), "{}", error.full_message());
    }
}

/// A call on an open connection takes such a timeout as well, also with replicas.
#[tokio::test]
async fn a_call_may_wait_without_end() {
    let server = Server::start_on_tcp();
    let years = "500000000000years";
    let options = format!(
        "response_timeout={years}&connect_timeout={years}&replicas=1&replica_timeout=1ms"
    );
    let config = RedisConfig::new(&format!("{}?{options}", server.url())).unwrap();
    let conn = Conn::open("test", config).await.unwrap();

    conn.call(Operation::Stats, &command("PING")).await.unwrap();
}

/// R21: no call hangs for ever, and many concurrent calls take no longer to fail than
/// one.
#[tokio::test]
async fn calls_to_a_silent_server_time_out_together() {
    let mut server = Server::start_on_tcp();
    let conn = Conn::open("test", config(&server.url())).await.unwrap();
    let port = server.url().rsplit(':').next().unwrap().replace("/0", "");
    server.kill();
    until_disconnected(&conn).await;
    // This listener accepts connections and never replies.
    let _silent = TcpListener::bind(format!("127.0.0.1:{port}")).unwrap();
    let start = Instant::now();

    let calls = (0..50).map(|_| {
        let conn = conn.clone();
        tokio::spawn(async move { conn.call(Operation::Stats, &command("PING")).await })
    });
    let calls: Vec<_> = calls.collect();
    for call in calls {
        assert!(call.await.unwrap().is_err());
    }

    assert!(start.elapsed() >= TIMEOUT, "the server was not silent");
    assert!(start.elapsed() < 4 * TIMEOUT, "{:?}", start.elapsed());
}

/// R21: a reply that arrived in time counts, even if no task could read it in time.
/// Here one handler keeps the only thread busy until the call's time limit has passed.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_answer_that_lay_unread_counts() {
    let server = Server::start();
    let config = config(&server.url()).response_timeout(SHORT).unwrap();
    let conn = Conn::open("test", config).await.unwrap();

    let calling = tokio::spawn(async move {
        let ping = command("PING");
        let call =
            tokio::spawn(async move { conn.call(Operation::Stats, &ping).await });
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        thread::sleep(2 * SHORT);
        call.await.unwrap()
    });

    assert_eq!(calling.await.unwrap().unwrap().text().unwrap(), "PONG");
}

async fn until_disconnected(conn: &Conn) {
    let start = Instant::now();
    while conn.is_connected() && start.elapsed() < Duration::from_secs(10) {
        tokio::task::yield_now().await;
    }
}

/// R21: a wrong password, a missing database and an unreachable server give different
/// errors.
#[tokio::test]
async fn each_refusal_of_the_server_has_its_error() {
    let server = Server::start_with(&["--requirepass", "right"]);
    let socket = server.socket();
    let open = async |query: &str| {
        let url = format!("unix://{}?{query}", socket.display());
        Conn::open("test", config(&url)).await
    };

    let wrong = open("pass=wrong").await.unwrap_err();
    let none = open("db=0").await.unwrap_err();
    let nowhere = open("pass=right&db=99").await.unwrap_err();

    assert!(matches!(wrong, Error::Denied { .. }), "{}", wrong.full_message());
    assert!(matches!(none, Error::Denied { .. }), "{}", none.full_message());
    assert!(matches!(nowhere, Error::Unusable { .. }), "{}", nowhere.full_message());
    assert!(open("pass=right").await.is_ok());
}

/// If the server closes an idle connection, the next call does not fail.
#[tokio::test]
async fn a_restart_while_idle_goes_unnoticed() {
    let mut server = Server::start();
    let conn = Conn::open("test", config(&server.url())).await.unwrap();
    server.restart();
    until_disconnected(&conn).await;

    let answer = conn.call(Operation::Stats, &command("PING")).await;

    assert_eq!(answer.unwrap().text().unwrap(), "PONG");
}

/// Starts a proxy that forwards the server's replies in small pieces, with a pause
/// after each. Returns the proxy's URL.
fn slow_link(server: &str) -> String {
    const PIECE: usize = 4096;
    const PAUSE: Duration = Duration::from_millis(300);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}/0", listener.local_addr().unwrap());
    let server =
        server.trim_start_matches("redis://").trim_end_matches("/0").to_owned();
    thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut server = TcpStream::connect(server).unwrap();
        let (mut from, mut to) =
            (client.try_clone().unwrap(), server.try_clone().unwrap());
        thread::spawn(move || io::copy(&mut from, &mut to));
        let mut piece = [0; PIECE];
        while let Ok(read @ 1..) = server.read(&mut piece) {
            client.write_all(&piece[..read]).unwrap();
            thread::sleep(PAUSE);
        }
    });
    url
}

/// R21: the response timeout limits silence. A call waits for a reply that keeps
/// arriving, and so do the calls behind it, although together they take several times
/// the limit.
#[tokio::test]
async fn a_slow_answer_is_waited_for() {
    let server = Server::start_on_tcp();
    let config = config(&slow_link(&server.url())).response_timeout(SHORT).unwrap();
    let conn = Conn::open("test", config).await.unwrap();
    let large = "x".repeat(100_000);
    let mut echo = command("ECHO");
    echo.arg(&large);
    let (ping, start) = (command("PING"), Instant::now());

    let (echoed, pinged) = tokio::join!(
        conn.call(Operation::Claim, &echo),
        conn.call(Operation::Settle, &ping)
    );

    assert_eq!(echoed.unwrap().text().unwrap(), large);
    assert_eq!(pinged.unwrap().text().unwrap(), "PONG");
    assert!(start.elapsed() > 3 * SHORT, "the link was not slow");
}
