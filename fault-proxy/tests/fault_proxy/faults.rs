//! Tests that each fault has its effect on the server and on the client.

use std::io::Read;

use relq_fault_proxy::proxy::{Behind, Fate, Fault, When};

use super::{
    ProxyFixture,
    client::{Client, command, increments},
};

const DROPPED: Fault = Fault::After(Behind::Dropped);

#[tokio::test]
async fn before_sends_nothing_and_kills_the_actor() {
    let fixture = ProxyFixture::new();
    fixture.proxy.plan("worker", 2, Fault::Before);
    let (mut client, mut other) = (fixture.client().await, fixture.client().await);
    client.ask(&["SET", "a", "1"], "+OK\r\n").await;
    other.ask(&["PING"], "+PONG\r\n").await;

    client.send(&command(&["SET", "a", "2"])).await;

    assert_eq!(client.rest().await, b"");
    assert_eq!(other.rest().await, b"");
    fixture.actor.gone().await;
    assert_eq!(fixture.ask("GET a"), "$1\r\n1\r\n");
    assert_eq!(fixture.client().await.rest().await, b"", "the dead do not come back");
}

#[tokio::test]
async fn after_runs_the_command_and_loses_its_reply() {
    let fixture = ProxyFixture::new();
    fixture.proxy.plan("worker", 2, DROPPED);
    let mut client = fixture.client().await;

    client.send(&increments(&["a", "b", "c"])).await;

    assert_eq!(client.rest().await, b":1\r\n");
    fixture.actor.gone().await;
    assert_eq!(fixture.ask("MGET a b c"), "*3\r\n$1\r\n1\r\n$1\r\n1\r\n$-1\r\n");
}

#[tokio::test]
async fn an_error_is_answered_in_its_turn_and_nothing_is_done() {
    let fixture = ProxyFixture::new();
    fixture.proxy.plan("worker", 2, Fault::Error("OOM no more room".to_owned()));
    let mut client = fixture.client().await;

    client.send(&increments(&["a", "b", "c"])).await;

    client.expect(b":1\r\n-OOM no more room\r\n:1\r\n").await;
    assert_eq!(fixture.ask("EXISTS b"), ":0\r\n");
}

#[tokio::test]
async fn an_error_at_exec_leaves_no_transaction_open() {
    let fixture = ProxyFixture::new();
    fixture.proxy.plan("worker", 1, Fault::Error("EXECABORT no".to_owned()));
    let mut client = fixture.client().await;
    client.ask(&["MULTI"], "+OK\r\n").await;
    client.ask(&["SET", "a", "1"], "+QUEUED\r\n").await;

    client.ask(&["EXEC"], "-EXECABORT no\r\n").await;

    client.ask(&["EXISTS", "a"], ":0\r\n").await;
}

#[tokio::test]
async fn a_cut_breaks_the_connection_and_the_actor_lives() {
    for (when, ran) in [(When::Before, ":0\r\n"), (When::After, ":1\r\n")] {
        let fixture = ProxyFixture::new();
        fixture.proxy.plan("worker", 1, Fault::Cut(when));
        let (mut client, mut other) = (fixture.client().await, fixture.client().await);
        other.ask(&["PING"], "+PONG\r\n").await;

        client.send(&command(&["SET", "a", "1"])).await;

        assert_eq!(client.rest().await, b"");
        assert_eq!(fixture.ask("EXISTS a"), ran);
        other.ask(&["PING"], "+PONG\r\n").await;
        fixture.client().await.ask(&["PING"], "+PONG\r\n").await;
    }
}

#[tokio::test]
async fn another_client_can_send_a_command_first() {
    let fixture = ProxyFixture::new();
    let flush = ["SCRIPT", "FLUSH"].map(str::to_owned).to_vec();
    fixture.proxy.plan("worker", 2, Fault::Meanwhile(flush));
    let mut client = fixture.client().await;
    client.ask(&["EVAL", "return 1", "0"], ":1\r\n").await;
    let digest = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";

    let answer = client.line(&["EVALSHA", digest, "0"]).await;

    assert_eq!(answer, "-NOSCRIPT No matching script. Please use EVAL.");
    assert!(matches!(
        fixture.proxy.steps()[1].fate,
        Fate::Injected(Fault::Meanwhile(_))
    ));
}

#[tokio::test]
async fn a_command_that_the_server_refuses_is_recorded() {
    let fixture = ProxyFixture::new();
    fixture.proxy.plan("worker", 1, Fault::Meanwhile(vec!["NOSUCH".to_owned()]));

    let mut client = fixture.client().await;
    client.send(&command(&["INCR", "a"])).await;

    assert_eq!(client.rest().await, b"");
    let troubles = fixture.proxy.troubles();
    assert!(troubles[0].starts_with("the server refused: -ERR unknown command"));
}

#[tokio::test]
async fn a_subscription_whose_reply_is_lost_is_not_confirmed() {
    for version in ["2", "3"] {
        let fixture = ProxyFixture::new();
        fixture.proxy.plan("worker", 1, DROPPED);
        let mut client = fixture.client().await;
        client.hello(version).await;

        client.send(&command(&["SUBSCRIBE", "a", "b"])).await;

        assert_eq!(client.rest().await, b"");
        fixture.actor.gone().await;
    }
}

#[tokio::test]
async fn a_transaction_whose_exec_fails_before_does_nothing() {
    let fixture = ProxyFixture::new();
    fixture.proxy.plan("worker", 1, Fault::Before);
    let mut client = fixture.client().await;
    client.ask(&["MULTI"], "+OK\r\n").await;
    client.ask(&["SET", "a", "1"], "+QUEUED\r\n").await;

    client.send(&command(&["EXEC"])).await;

    fixture.actor.gone().await;
    assert_eq!(fixture.ask("EXISTS a"), ":0\r\n");
}

#[tokio::test]
async fn only_the_actor_of_the_fault_dies() {
    let fixture = ProxyFixture::new();
    let reaper = fixture.proxy.actor("reaper").unwrap();
    fixture.proxy.plan("worker", 1, Fault::Before);
    let mut other = Client::connect(reaper.url()).await;
    other.ask(&["INCR", "a"], ":1\r\n").await;

    fixture.client().await.send(&command(&["INCR", "a"])).await;
    fixture.actor.gone().await;

    other.ask(&["INCR", "a"], ":2\r\n").await;
}

#[tokio::test]
async fn the_record_has_the_actor_the_command_and_its_fate() {
    let fixture = ProxyFixture::new();
    fixture.proxy.plan("worker", 2, DROPPED);
    fixture.proxy.plan("worker", 9, Fault::Before);
    let mut client = fixture.client().await;
    client.send(&increments(&["a", "b", "c"])).await;
    fixture.actor.gone().await;

    let steps = fixture.proxy.steps();

    let fates: Vec<_> = steps.iter().map(|step| &step.fate).collect();
    let left = Fate::LeftBehind(Behind::Dropped);
    assert_eq!(fates, [&Fate::Passed, &Fate::Injected(DROPPED), &left]);
    let places = steps.iter().map(|step| (step.connection, step.step));
    assert!(places.eq([(1, 1), (1, 2), (1, 3)]));
    assert_eq!(fixture.proxy.unfired(), [("worker".to_owned(), 9, Fault::Before)]);
}

#[tokio::test]
async fn a_killed_actor_comes_back_when_it_is_revived() {
    let fixture = ProxyFixture::new();
    let mut client = fixture.client().await;
    client.ask(&["INCR", "a"], ":1\r\n").await;

    fixture.proxy.kill(&fixture.actor).await;
    assert_eq!(client.rest().await, b"");
    fixture.proxy.revive(&fixture.actor);

    fixture.client().await.ask(&["INCR", "a"], ":2\r\n").await;
    let connections =
        fixture.proxy.steps().iter().map(|s| s.connection).collect::<Vec<_>>();
    assert_eq!(connections, [1, 2]);
}

#[tokio::test]
async fn an_actor_is_gone_only_when_the_server_has_seen_it() {
    let fixture = ProxyFixture::new();
    let direct = format!("unix://{}", fixture.server.socket().display());
    let mut listener = Client::connect(&direct).await;
    let confirmed = "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n";
    listener.ask(&["SUBSCRIBE", "news"], confirmed).await;
    let mut client = fixture.client().await;
    let slow = command(&["DEBUG", "SLEEP", "0.1"]);
    client.send(&[slow, command(&["PUBLISH", "news", "x"])].concat()).await;
    while fixture.actor.steps() < 2 {
        tokio::task::yield_now().await;
    }

    fixture.proxy.kill(&fixture.actor).await;

    // The command has already run, so the message is there and this read does not wait.
    let mut message = [0; 100];
    let got = listener.0.into_std().unwrap().read(&mut message).unwrap();
    assert!(message[..got].starts_with(b"*3\r\n$7\r\nmessage\r\n"));
}

#[tokio::test]
async fn healing_takes_back_what_was_planned() {
    let fixture = ProxyFixture::new();
    fixture.proxy.plan("worker", 1, Fault::Before);

    fixture.proxy.heal().await.unwrap();

    fixture.client().await.ask(&["INCR", "a"], ":1\r\n").await;
}

#[tokio::test]
async fn a_server_that_is_down_shows_as_a_closed_connection() {
    let mut fixture = ProxyFixture::new();
    let mut client = fixture.client().await;
    client.ask(&["PING"], "+PONG\r\n").await;

    fixture.server.kill();
    assert_eq!(client.rest().await, b"");
    assert_eq!(fixture.client().await.rest().await, b"");
    fixture.server.restart();

    fixture.client().await.ask(&["PING"], "+PONG\r\n").await;
}
