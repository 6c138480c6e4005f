//! Tests of commands that an actor sent before it died and that the server runs later.

use std::time::Duration;

use relq_fault_proxy::proxy::{Behind, Fault};

use super::{
    ProxyFixture,
    client::{command, increments},
};

#[tokio::test]
async fn a_ghost_runs_when_it_is_released_and_not_before() {
    let fixture = ProxyFixture::new();
    fixture.proxy.plan("worker", 2, Fault::Ghost);
    let mut client = fixture.client().await;

    client.send(&increments(&["a", "b", "c"])).await;

    assert_eq!(client.rest().await, b":1\r\n");
    fixture.actor.gone().await;
    assert_eq!(fixture.ask("MGET a b c"), "*3\r\n$1\r\n1\r\n$-1\r\n$-1\r\n");
    assert_eq!(fixture.proxy.release_ghosts().await.unwrap(), 2);
    assert_eq!(fixture.ask("MGET a b c"), "*3\r\n$1\r\n1\r\n$1\r\n1\r\n$1\r\n1\r\n");
    assert_eq!(fixture.proxy.release_ghosts().await.unwrap(), 0);
}

#[tokio::test]
async fn commands_sent_behind_a_lost_reply_can_run_late() {
    let fixture = ProxyFixture::new();
    fixture.proxy.plan("worker", 2, Fault::After(Behind::Ghosts));
    let mut client = fixture.client().await;

    client.send(&increments(&["a", "b", "c"])).await;

    assert_eq!(client.rest().await, b":1\r\n");
    fixture.actor.gone().await;
    assert_eq!(fixture.ask("MGET a b c"), "*3\r\n$1\r\n1\r\n$1\r\n1\r\n$-1\r\n");
    assert_eq!(fixture.proxy.release_ghosts().await.unwrap(), 1);
    assert_eq!(fixture.ask("EXISTS c"), ":1\r\n");
}

#[tokio::test]
async fn a_ghost_keeps_the_state_of_its_connection() {
    let fixture = ProxyFixture::new();
    fixture.proxy.plan("worker", 1, Fault::Ghost);
    let mut client = fixture.client().await;
    client.ask(&["SELECT", "5"], "+OK\r\n").await;
    client.ask(&["MULTI"], "+OK\r\n").await;
    client.ask(&["INCR", "a"], "+QUEUED\r\n").await;
    client.send(&command(&["EXEC"])).await;
    fixture.actor.gone().await;

    fixture.proxy.release_ghosts().await.unwrap();

    assert_eq!(fixture.ask("EXISTS a"), ":0\r\n");
    assert_eq!(fixture.ask("SWAPDB 0 5"), "+OK\r\n");
    assert_eq!(fixture.ask("EXISTS a"), ":1\r\n");
}

#[tokio::test]
async fn a_late_script_reads_the_time_at_which_it_runs() {
    let fixture = ProxyFixture::new();
    fixture.proxy.plan("worker", 1, Fault::Ghost);
    let script = "redis.call('SET', KEYS[1], redis.call('TIME')[1])";
    fixture.client().await.send(&command(&["EVAL", script, "1", "a"])).await;
    fixture.actor.gone().await;

    fixture.clock.advance(Duration::from_secs(3));
    fixture.proxy.release_ghosts().await.unwrap();

    assert_eq!(fixture.ask("GET a"), "$10\r\n4102444803\r\n");
}

/// A blocking command that the proxy forwards after the death of its actor must not
/// wait: the server must see the end of the connection before it runs the command.
#[tokio::test]
async fn a_blocking_ghost_takes_what_is_there_and_does_not_wait() {
    let fixture = ProxyFixture::new();
    fixture.proxy.plan("worker", 1, Fault::Ghost);
    let wait = command(&["BLMOVE", "a", "b", "LEFT", "LEFT", "0"]);
    fixture.client().await.send(&wait).await;
    fixture.actor.gone().await;

    fixture.proxy.release_ghosts().await.unwrap();
    fixture.ask("RPUSH a job");

    assert_eq!(fixture.ask("EXISTS b"), ":0\r\n");
}
