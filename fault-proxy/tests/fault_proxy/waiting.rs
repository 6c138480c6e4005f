//! Tests of commands that block at the server: the proxy forwards them, the suite's
//! clock ends them, and clients may die while they wait.

use std::time::Duration;

use relq_fault_proxy::proxy::{Behind, Fault};

use super::{ProxyFixture, client::command};

const BLOCK: Duration = Duration::from_secs(5);
const WAIT: [&str; 6] = ["BLMOVE", "a", "b", "RIGHT", "LEFT", "5"];
const GOT: &[u8] = b"$3\r\njob\r\n";

#[tokio::test]
async fn a_waiting_client_gets_a_pushed_element() {
    let fixture = ProxyFixture::new();
    let mut client = fixture.client().await;
    client.send(&command(&WAIT)).await;
    fixture.actor.held().await;

    fixture.ask("LPUSH a job");

    client.expect(GOT).await;
    assert_eq!(fixture.clock.next_in(), None, "nothing waits any more");
    client.ask(&["LLEN", "b"], ":1\r\n").await;
}

#[tokio::test]
async fn an_element_that_is_there_is_returned_at_once() {
    let fixture = ProxyFixture::new();
    fixture.ask("LPUSH a job");
    let mut client = fixture.client().await;

    client.send(&[command(&WAIT), command(&["PING"])].concat()).await;

    client.expect(&[GOT, b"+PONG\r\n"].concat()).await;
}

#[tokio::test]
async fn a_wait_ends_when_the_clock_has_passed_its_limit() {
    let waits: [&[&str]; 8] = [
        &WAIT,
        &["BLPOP", "a", "b", "5"],
        &["BRPOPLPUSH", "a", "b", "5.0"],
        &["BZPOPMIN", "a", "5"],
        &["BLMPOP", "5", "1", "a", "LEFT"],
        &["BZMPOP", "5", "1", "a", "MIN"],
        &["XREAD", "COUNT", "1", "BLOCK", "5000", "STREAMS", "a", "$"],
        &["WAIT", "1", "5000"],
    ];
    let fixture = ProxyFixture::new();
    let mut client = fixture.client().await;
    for words in waits {
        client.send(&command(words)).await;
        fixture.actor.held().await;
        fixture.clock.asleep(1).await;
        assert_eq!(fixture.clock.sleepers(), [BLOCK], "{words:?}");

        fixture.clock.advance(BLOCK);

        let answer = if words[0] == "WAIT" { ":0" } else { "*-1" };
        assert_eq!(client.next_line().await, answer, "{words:?}");
    }
}

#[tokio::test]
async fn a_wait_does_not_end_by_the_servers_own_clock() {
    let fixture = ProxyFixture::new();
    let mut client = fixture.client().await;
    client.send(&command(&["BLPOP", "a", "0.001"])).await;
    fixture.actor.held().await;

    assert_eq!(fixture.ask("DEBUG SLEEP 0.05"), "+OK\r\n");
    fixture.ask("LPUSH a job");

    client.expect(b"*2\r\n$1\r\na\r\n$3\r\njob\r\n").await;
}

#[tokio::test]
async fn a_wait_without_a_limit_is_no_sleeper() {
    let fixture = ProxyFixture::new();
    let mut client = fixture.client().await;
    client.send(&command(&["BLPOP", "a", "0"])).await;
    fixture.actor.held().await;

    assert_eq!(fixture.clock.advance_to_next(), None);
    fixture.ask("LPUSH a job");

    client.expect(b"*2\r\n$1\r\na\r\n$3\r\njob\r\n").await;
}

#[tokio::test]
async fn a_limit_that_is_none_is_refused_by_the_server() {
    let fixture = ProxyFixture::new();
    let mut client = fixture.client().await;

    for limit in ["-1", "soon", "inf"] {
        let answer = client.line(&["BLPOP", "a", limit]).await;
        assert!(answer.starts_with("-ERR timeout"), "{answer}");
    }
}

#[tokio::test]
async fn a_waiter_that_disconnects_takes_nothing() {
    let fixture = ProxyFixture::new();
    let mut client = fixture.client().await;
    client.send(&command(&WAIT)).await;
    fixture.actor.held().await;

    drop(client);
    fixture.proxy.kill(&fixture.actor).await;
    fixture.ask("LPUSH a job");

    assert_eq!(fixture.ask("LLEN a"), ":1\r\n");
}

#[tokio::test]
async fn a_waiter_that_dies_with_a_close_takes_nothing() {
    let fixture = ProxyFixture::new();
    fixture.proxy.plan("worker", 1, Fault::WaiterCloses);
    let mut client = fixture.client().await;

    client.send(&command(&WAIT)).await;

    assert_eq!(client.rest().await, b"");
    fixture.actor.gone().await;
    fixture.ask("LPUSH a job");
    assert_eq!(fixture.ask("LLEN a"), ":1\r\n");
}

#[tokio::test]
async fn a_waiter_that_freezes_is_served_and_reads_no_reply() {
    let fixture = ProxyFixture::new();
    fixture.proxy.plan("worker", 1, Fault::WaiterFreezes);
    let (mut client, mut other) = (fixture.client().await, fixture.client().await);
    other.ask(&["PING"], "+PONG\r\n").await;

    client.send(&command(&WAIT)).await;

    assert_eq!((client.rest().await, other.rest().await), (vec![], vec![]));
    fixture.actor.gone().await;
    assert_eq!(connections(&fixture), 4, "two frozen, the proxy's own, and who asks");
    fixture.ask("LPUSH a job");
    assert_eq!(fixture.ask("LLEN b"), ":1\r\n");
    fixture.proxy.heal().await.unwrap();
    assert_eq!(connections(&fixture), 2);
}

#[tokio::test]
async fn a_waiter_that_was_served_at_once_dies_with_its_reply() {
    for fault in [Fault::WaiterCloses, Fault::WaiterFreezes] {
        let fixture = ProxyFixture::new();
        fixture.proxy.plan("worker", 1, fault);
        fixture.ask("LPUSH a job");
        let mut client = fixture.client().await;

        client.send(&command(&WAIT)).await;

        assert_eq!(client.rest().await, b"");
        fixture.actor.gone().await;
        assert_eq!(fixture.ask("LLEN b"), ":1\r\n");
    }
}

#[tokio::test]
async fn a_wait_whose_reply_is_lost_ends_by_the_clock_too() {
    let fixture = ProxyFixture::new();
    fixture.proxy.plan("worker", 1, Fault::After(Behind::Dropped));
    let mut client = fixture.client().await;
    client.send(&command(&WAIT)).await;
    fixture.clock.asleep(1).await;

    fixture.clock.advance(BLOCK);

    assert_eq!(client.rest().await, b"");
    fixture.actor.gone().await;
}

#[tokio::test]
async fn a_wait_is_kept_also_after_a_restart_of_the_server() {
    let mut fixture = ProxyFixture::new();
    for _ in 0..2 {
        let mut client = fixture.client().await;
        client.send(&command(&WAIT)).await;
        fixture.actor.held().await;
        fixture.ask("LPUSH a job");
        client.expect(GOT).await;

        fixture.server.restart();
        assert_eq!(client.rest().await, b"");
    }
    assert_eq!(fixture.proxy.troubles(), [""; 0]);
}

/// When a blocking command times out, the proxy replies to it itself. Its reply must be
/// the same as the server's, in both versions of the protocol.
#[tokio::test]
async fn a_time_out_in_its_place_is_what_the_server_would_say() {
    let waits: [&[&str]; 4] = [
        &["BLMOVE", "a", "b", "LEFT", "LEFT", "0.001"],
        &["BLPOP", "a", "0.001"],
        &["XREAD", "BLOCK", "1", "STREAMS", "a", "$"],
        &["WAIT", "1", "1"],
    ];
    for version in ["2", "3"] {
        for words in waits {
            let own = own_answer(version, words).await;
            let fixture = ProxyFixture::new();
            fixture.proxy.plan("worker", 1, Fault::TimeOut);
            fixture.ask("LPUSH a job");
            let mut client = fixture.client().await;
            client.hello(version).await;

            client.ask(words, &own).await;

            assert_eq!(fixture.ask("LLEN a"), ":1\r\n");
        }
    }
}

async fn own_answer(version: &str, words: &[&str]) -> String {
    let fixture = ProxyFixture::new();
    let url = format!("unix://{}", fixture.server.socket().display());
    let mut client = super::Client::connect(&url).await;
    client.hello(version).await;
    client.line(words).await + "\r\n"
}

#[tokio::test]
async fn a_time_out_does_not_fire_at_what_does_not_wait() {
    let fixture = ProxyFixture::new();
    fixture.proxy.plan("worker", 1, Fault::TimeOut);

    fixture.client().await.ask(&["INCR", "a"], ":1\r\n").await;

    assert_eq!(fixture.proxy.unfired().len(), 1);
}

fn connections(fixture: &ProxyFixture) -> usize {
    fixture.ask("CLIENT LIST").matches("id=").count()
}
