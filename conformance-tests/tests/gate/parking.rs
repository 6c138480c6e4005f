//! Steps that wait at the gate, and the suite that decides on them.

use conformance_tests::fault::{Behind, Fate, Fault, StepRecord};

use super::{
    Stage,
    client::{Client, command, increments},
};

fn places(parked: &[StepRecord]) -> Vec<(&str, u32)> {
    parked.iter().map(|step| (step.actor.as_str(), step.step)).collect()
}

#[tokio::test]
async fn the_suite_decides_who_goes_first() {
    let stage = Stage::new();
    let reaper = stage.gate.actor("reaper").unwrap();
    stage.gate.park();
    let (mut one, mut two) =
        (stage.client().await, Client::connect(reaper.url()).await);
    one.send(&command(&["APPEND", "a", "1"])).await;
    stage.gate.parked(1).await;
    two.send(&command(&["APPEND", "a", "2"])).await;

    let parked = stage.gate.parked(2).await;
    assert_eq!(places(&parked), [("reaper", 1), ("worker", 1)]);
    assert_eq!(stage.ask("EXISTS a"), ":0\r\n");
    assert!(stage.gate.pass("reaper", 1));
    two.expect(b":1\r\n").await;
    assert!(stage.gate.pass("worker", 1));
    one.expect(b":2\r\n").await;

    assert_eq!(stage.ask("GET a"), "$2\r\n21\r\n");
}

#[tokio::test]
async fn a_parked_step_holds_those_behind_it_and_not_those_before() {
    let stage = Stage::new();
    stage.gate.park();
    let mut client = stage.client().await;
    client.send(&increments(&["a", "b"])).await;

    assert_eq!(places(&stage.gate.parked(1).await), [("worker", 1)]);
    assert!(stage.gate.pass("worker", 1));
    client.expect(b":1\r\n").await;
    assert_eq!(places(&stage.gate.parked(1).await), [("worker", 2)]);
    assert_eq!(stage.ask("EXISTS b"), ":0\r\n");
}

#[tokio::test]
async fn a_parked_step_can_be_struck() {
    let stage = Stage::new();
    stage.gate.park();
    let mut client = stage.client().await;
    client.send(&command(&["INCR", "a"])).await;
    stage.gate.parked(1).await;
    let fault = Fault::After(Behind::Dropped);

    assert!(stage.gate.strike("worker", 1, fault.clone()));

    stage.actor.gone().await;
    assert_eq!(stage.ask("EXISTS a"), ":1\r\n");
    assert_eq!(stage.gate.steps()[0].fate, Fate::Struck(fault));
}

#[tokio::test]
async fn a_decision_on_what_does_not_wait_is_refused() {
    let stage = Stage::new();
    stage.gate.park();

    assert!(!stage.gate.pass("worker", 1));
    assert!(!stage.gate.strike("worker", 1, Fault::Before));
    assert_eq!(stage.gate.unfired(), []);
}

#[tokio::test]
async fn the_dead_do_not_stay_parked() {
    let stage = Stage::new();
    stage.gate.park();
    stage.client().await.send(&command(&["INCR", "a"])).await;
    stage.gate.parked(1).await;

    stage.gate.kill(&stage.actor).await;

    assert_eq!(stage.gate.parked(0).await, []);
    assert_eq!(stage.ask("EXISTS a"), ":0\r\n");
}

#[tokio::test]
async fn healing_lets_all_go_that_are_parked() {
    let stage = Stage::new();
    stage.gate.park();
    let mut client = stage.client().await;
    client.send(&increments(&["a", "b"])).await;
    stage.gate.parked(1).await;

    stage.gate.heal().await.unwrap();

    client.expect(b":1\r\n:1\r\n").await;
}
