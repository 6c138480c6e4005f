//! Tests of steps that the proxy holds back until the suite decides what happens to
//! them.

use relq_fault_proxy::proxy::{Behind, Fate, Fault, StepRecord};

use super::{
    ProxyFixture,
    client::{Client, command, increments},
};

fn places(parked: &[StepRecord]) -> Vec<(&str, u32)> {
    parked.iter().map(|step| (step.actor.as_str(), step.step)).collect()
}

#[tokio::test]
async fn the_suite_decides_which_command_runs_first() {
    let fixture = ProxyFixture::new();
    let reaper = fixture.proxy.actor("reaper").unwrap();
    fixture.proxy.park();
    let (mut one, mut two) =
        (fixture.client().await, Client::connect(reaper.url()).await);
    one.send(&command(&["APPEND", "a", "1"])).await;
    fixture.proxy.parked(1).await;
    two.send(&command(&["APPEND", "a", "2"])).await;

    let parked = fixture.proxy.parked(2).await;
    assert_eq!(places(&parked), [("reaper", 1), ("worker", 1)]);
    assert_eq!(fixture.ask("EXISTS a"), ":0\r\n");
    assert!(fixture.proxy.pass("reaper", 1));
    two.expect(b":1\r\n").await;
    assert!(fixture.proxy.pass("worker", 1));
    one.expect(b":2\r\n").await;

    assert_eq!(fixture.ask("GET a"), "$2\r\n21\r\n");
}

#[tokio::test]
async fn a_parked_step_holds_those_behind_it_and_not_those_before() {
    let fixture = ProxyFixture::new();
    fixture.proxy.park();
    let mut client = fixture.client().await;
    client.send(&increments(&["a", "b"])).await;

    assert_eq!(places(&fixture.proxy.parked(1).await), [("worker", 1)]);
    assert!(fixture.proxy.pass("worker", 1));
    client.expect(b":1\r\n").await;
    assert_eq!(places(&fixture.proxy.parked(1).await), [("worker", 2)]);
    assert_eq!(fixture.ask("EXISTS b"), ":0\r\n");
}

#[tokio::test]
async fn a_fault_can_be_injected_at_a_parked_step() {
    let fixture = ProxyFixture::new();
    fixture.proxy.park();
    let mut client = fixture.client().await;
    client.send(&command(&["INCR", "a"])).await;
    fixture.proxy.parked(1).await;
    let fault = Fault::After(Behind::Dropped);

    assert!(fixture.proxy.inject("worker", 1, fault.clone()));

    fixture.actor.gone().await;
    assert_eq!(fixture.ask("EXISTS a"), ":1\r\n");
    assert_eq!(fixture.proxy.steps()[0].fate, Fate::Injected(fault));
}

#[tokio::test]
async fn a_decision_on_what_does_not_wait_is_refused() {
    let fixture = ProxyFixture::new();
    fixture.proxy.park();

    assert!(!fixture.proxy.pass("worker", 1));
    assert!(!fixture.proxy.inject("worker", 1, Fault::Before));
    assert_eq!(fixture.proxy.unfired(), []);
}

#[tokio::test]
async fn the_dead_do_not_stay_parked() {
    let fixture = ProxyFixture::new();
    fixture.proxy.park();
    fixture.client().await.send(&command(&["INCR", "a"])).await;
    fixture.proxy.parked(1).await;

    fixture.proxy.kill(&fixture.actor).await;

    assert_eq!(fixture.proxy.parked(0).await, []);
    assert_eq!(fixture.ask("EXISTS a"), ":0\r\n");
}

#[tokio::test]
async fn healing_lets_all_go_that_are_parked() {
    let fixture = ProxyFixture::new();
    fixture.proxy.park();
    let mut client = fixture.client().await;
    client.send(&increments(&["a", "b"])).await;
    fixture.proxy.parked(1).await;

    fixture.proxy.heal().await.unwrap();

    client.expect(b":1\r\n:1\r\n").await;
}
