//! Tests that `TIME` returns the suite's time, also inside scripts.

use std::time::Duration;

use relq_fault_proxy::proxy::StepRecord;

use super::{
    ProxyFixture,
    client::{Client, bulk},
};

const NOW: &str = "*2\r\n$10\r\n4102444800\r\n$1\r\n0\r\n";
const LATER: &str = "*2\r\n$10\r\n4102444807\r\n$6\r\n500000\r\n";
const A_WHILE: Duration = Duration::from_millis(7_500);

const ASKS_TIME: &str = "return redis.call('TIME')";
const WITH_FLAGS: &str =
    "#!lua flags=allow-oom,no-writes\n-- Tell the time.\nreturn redis.pcall('time')";

/// Returns the reply that `TIME` must have in a script that runs after `others` other
/// scripts. As long as the suite's clock is not advanced, each script sees a time one
/// microsecond later than the script before.
fn after_scripts(others: u8, told: &str) -> String {
    let begin = told.trim_end_matches("0\r\n");
    format!("{begin}{others}\r\n")
}

/// Loads a script; returns its digest.
async fn load(client: &mut Client, source: &str) -> String {
    assert_eq!(client.line(&["SCRIPT", "LOAD", source]).await, "$40");
    client.next_line().await
}

#[tokio::test]
async fn time_stands_still_until_it_is_advanced() {
    let fixture = ProxyFixture::new();
    let mut client = fixture.client().await;

    client.ask(&["TIME"], NOW).await;
    fixture.clock.advance(A_WHILE);

    client.ask(&["time"], LATER).await;
}

#[tokio::test]
async fn a_script_reads_the_proxys_clock_however_it_is_called() {
    for source in [ASKS_TIME, WITH_FLAGS] {
        let fixture = ProxyFixture::new();
        let mut client = fixture.client().await;
        client.ask(&["EVAL", source, "0"], NOW).await;
        let digest = load(&mut client, source).await;
        fixture.clock.advance(A_WHILE);

        client.ask(&["EVALSHA", &digest, "0"], LATER).await;
        let (second, third) = (after_scripts(1, LATER), after_scripts(2, LATER));
        client.ask(&["EVALSHA_RO", &digest.to_uppercase(), "0"], &second).await;
        client.ask(&["EVAL_RO", source, "1", "key", "arg"], &third).await;
    }
}

#[tokio::test]
async fn time_in_a_transaction_is_the_proxys() {
    let fixture = ProxyFixture::new();
    let mut client = fixture.client().await;
    client.ask(&["MULTI"], "+OK\r\n").await;
    client.ask(&["TIME"], "+QUEUED\r\n").await;
    client.ask(&["EVAL", ASKS_TIME, "0"], "+QUEUED\r\n").await;

    client.ask(&["EXEC"], &format!("*2\r\n{NOW}{NOW}")).await;
}

#[tokio::test]
async fn the_client_gets_the_digest_that_it_knows() {
    let fixture = ProxyFixture::new();
    let mut client = fixture.client().await;

    let digest = load(&mut client, "return 1").await;

    assert_eq!(digest, "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
    let unknown = "0".repeat(40);
    let exists = ["SCRIPT", "EXISTS", &digest, &unknown];
    client.ask(&exists, "*2\r\n:1\r\n:0\r\n").await;
}

#[tokio::test]
async fn a_flushed_script_is_unknown_until_it_is_sent_again() {
    const UNKNOWN: &str = "-NOSCRIPT No matching script. Please use EVAL.\r\n";
    let fixture = ProxyFixture::new();
    let mut client = fixture.client().await;
    let digest = load(&mut client, ASKS_TIME).await;
    client.ask(&["EVALSHA", &digest, "0"], NOW).await;

    assert_eq!(fixture.ask("SCRIPT FLUSH"), "+OK\r\n");

    client.ask(&["EVALSHA", &digest, "0"], UNKNOWN).await;
    client.ask(&["SCRIPT", "EXISTS", &digest], "*1\r\n:0\r\n").await;
    client.ask(&["EVAL", ASKS_TIME, "0"], &after_scripts(2, NOW)).await;
    client.ask(&["EVALSHA", &digest, "0"], &after_scripts(3, NOW)).await;
}

#[tokio::test]
async fn keys_and_arguments_are_what_the_client_sent() {
    let fixture = ProxyFixture::new();
    let mut client = fixture.client().await;
    let source = "local n = #ARGV; table.insert(ARGV, 'x'); table.remove(ARGV); \
                  return {#KEYS, n, KEYS[1], select('#', unpack(ARGV)), \
                  select('#', unpack(ARGV, 2)), ARGV[3] or 'none', ARGV[2]}";

    client
        .ask(
            &["EVAL", source, "1", "key", "a", "b"],
            "*7\r\n:1\r\n:2\r\n$3\r\nkey\r\n:2\r\n:1\r\n$4\r\nnone\r\n$1\r\nb\r\n",
        )
        .await;
    client.ask(&["EVAL", "return #ARGV", "0"], ":0\r\n").await;
}

#[tokio::test]
async fn a_wrong_number_of_keys_is_refused_by_the_server() {
    let fixture = ProxyFixture::new();
    let mut client = fixture.client().await;
    let too_many = "ERR Number of keys can't be greater than number of args";

    let answer = client.line(&["EVAL", "return 1", "2", "key"]).await;
    assert_eq!(answer, format!("-{too_many}"));
    let answer = client.line(&["EVAL", "return 1", "-1"]).await;
    assert_eq!(answer, "-ERR Number of keys can't be negative");
}

#[tokio::test]
async fn the_other_functions_of_scripts_are_there() {
    let fixture = ProxyFixture::new();
    let mut client = fixture.client().await;
    let sha = "return redis.sha1hex('')";
    let empty = bulk("da39a3ee5e6b4b0d3255bfef95601890afd80709");
    client.ask(&["EVAL", sha, "0"], &empty).await;
    client.ask(&["EVAL", "return redis.status_reply('FINE')", "0"], "+FINE\r\n").await;
    let error = "return redis.error_reply('MY words')";
    client.ask(&["EVAL", error, "0"], "-MY words\r\n").await;
    let log = "redis.log(redis.LOG_WARNING, 'x'); redis.setresp(3); return 1";
    client.ask(&["EVAL", log, "0"], ":1\r\n").await;
    let caught = "local e = redis.pcall('NOSUCH'); return e.err and 'caught' or 'no'";
    client.ask(&["EVAL", caught, "0"], &bulk("caught")).await;
}

#[tokio::test]
async fn an_error_in_a_script_names_the_script_and_its_line() {
    let fixture = ProxyFixture::new();
    let mut client = fixture.client().await;

    let raised = "#!lua\n\n\nerror('mine')";
    let answer = client.line(&["EVAL", raised, "0"]).await;
    assert!(answer.contains("user_script:4: mine"), "{answer}");
    let refused = "redis.call('SET', 'a', '1')\nreturn redis.call('LPOP', 'a')";
    let answer = client.line(&["EVAL", refused, "0"]).await;
    assert!(answer.starts_with("-WRONGTYPE"), "{answer}");
    assert!(answer.contains("on @user_script:"), "{answer}");
}

#[tokio::test]
async fn scripts_are_recorded_by_what_they_say_they_do() {
    let fixture = ProxyFixture::new();
    let mut client = fixture.client().await;
    let digest = load(&mut client, WITH_FLAGS).await;
    fixture.proxy.name_script(ASKS_TIME, "ask");

    client.ask(&["EVALSHA", &digest, "0"], NOW).await;
    client.ask(&["EVAL", WITH_FLAGS, "0"], &after_scripts(1, NOW)).await;
    client.ask(&["EVAL", ASKS_TIME, "0"], &after_scripts(2, NOW)).await;

    let labels: Vec<_> = fixture.proxy.steps().iter().map(StepRecord::label).collect();
    let own = format!("Tell the time. [{}]", &digest[..8]);
    assert_eq!(labels, [&own, &own, "ask"]);
}
