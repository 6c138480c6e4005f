//! The reference model knows what must be told of a job (R29).

use std::time::Duration;

use bytes::Bytes;
use relq_core::{JobId, NewJob, results::JobResult};

use super::{
    class::declared,
    draft,
    possible_state::{End, JobLocation, PossibleState},
    reference::Reference,
    sequence::Steps,
};

const KEPT_MS: u64 = 20_000;

fn id() -> JobId {
    "one".parse().unwrap()
}

/// A model with one job that keeps its result, in these states.
fn model(states: impl Fn(PossibleState) -> Vec<PossibleState>) -> Reference {
    let mut model = Reference::new(declared(|_| {}), Steps::Usual);
    let job = NewJob::new("job 1").keep_result(Duration::from_millis(KEPT_MS));
    let states = states(model.absent());
    model.add_job(&job, Some(id()), None, states);
    model
}

/// A model with a job that a lost call may have ended with result 1.
fn model_of_a_lost_settlement() -> Reference {
    model(|absent| {
        let done = PossibleState { value: 1, ..absent };
        vec![absent.at(JobLocation::Dead), done.ended(End::Finished, 1000)]
    })
}

fn done(result: impl Into<Bytes>) -> JobResult {
    JobResult::Done { result: result.into() }
}

#[test]
fn what_is_told_says_whether_a_lost_call_took_effect() {
    let mut model = model_of_a_lost_settlement();

    model.told(&id(), Some(&done(draft::value(1)))).unwrap();

    assert_eq!(model.jobs[0].possible_states.len(), 1);
    let dead = JobResult::Dead { error: "no".to_owned() };
    assert!(model.told(&id(), Some(&dead)).is_err(), "it is done");
}

#[test]
fn another_result_breaks_the_rule() {
    let mut model = model_of_a_lost_settlement();

    let wrong = model.told(&id(), Some(&done("another"))).unwrap_err();

    assert!(wrong.starts_with("R29: told Some(Done"), "{wrong}");
    assert!(model.told(&id(), None).is_err(), "a job is gone without its result");
}

#[test]
fn a_result_is_told_for_its_time() {
    let mut model = model(|absent| vec![absent.ended(End::Finished, 1000)]);
    let empty = done("");
    model.now = 1000 + KEPT_MS - 2;
    model.told(&id(), Some(&empty)).unwrap();
    assert!(model.clone().told(&id(), None).is_err(), "it is kept longer");

    model.now = 1000 + KEPT_MS + 2;

    assert!(model.clone().told(&id(), Some(&empty)).is_err(), "it is not kept so long");
    model.told(&id(), None).unwrap();
}
