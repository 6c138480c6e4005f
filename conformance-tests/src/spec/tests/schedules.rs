//! The reference model finds a tick without its job, and a job without its tick (R28).

use relq_core::{
    NewJob,
    environment::Timestamp,
    outcome::Pushed,
    schedule::{Schedule, ScheduleStored, Schedules, Ticked},
};

use super::{
    class::declared,
    draft,
    possible_state::PossibleState,
    pushing::PushCall,
    reference::Reference,
    scheduling::{TickOf, push_of},
    sequence::Steps,
};

const TICK: TickOf = TickOf { schedule: 1, definition: 1, at: 3000 };

/// A model in which schedule 1 was stored at the beginning, five seconds ago.
fn model() -> Reference {
    let mut model = Reference::new(declared(|_| {}), Steps::Usual);
    model.schedule_put(1, 1, ScheduleStored::Created).unwrap();
    model.conclude().unwrap();
    model.now = 5000;
    model
}

/// A model in which the reply to the tick was lost.
fn model_of_a_lost_tick() -> Reference {
    let mut model = model();
    model.maybe_ticked(TICK, &push("job 1"));
    model.conclude().unwrap();
    model
}

fn push(payload: &'static str) -> PushCall {
    push_of(NewJob::new(payload))
}

/// The list of the schedules, five seconds after the beginning.
fn listed(last_tick: i64) -> Schedules {
    let start = 1_000_000;
    let at = |ms| Timestamp::from_unix_ms(start + ms);
    let (name, definition) = (draft::schedule(1), draft::definition(1));
    Schedules::new(at(5000), vec![Schedule::new(name, definition, at(last_tick))])
}

fn job_may_be_absent(model: &Reference) -> Vec<bool> {
    model.jobs[0].possible_states.iter().map(PossibleState::is_absent).collect()
}

#[test]
fn a_recorded_tick_has_pushed_its_job() {
    let mut model = model_of_a_lost_tick();

    model.schedules_seen(&listed(3000)).unwrap();
    model.conclude().unwrap();

    assert_eq!(job_may_be_absent(&model), [false]);
}

#[test]
fn a_tick_that_is_not_recorded_has_pushed_no_job() {
    let mut model = model_of_a_lost_tick();

    model.schedules_seen(&listed(0)).unwrap();
    model.conclude().unwrap();

    assert_eq!(job_may_be_absent(&model), [true]);
}

#[test]
fn a_job_without_its_tick_breaks_the_rule() {
    let mut model = model_of_a_lost_tick();
    model.keep(0, "it is listed", |possible| !possible.is_absent()).unwrap();
    model.conclude().unwrap();

    let wrong = model.schedules_seen(&listed(0)).unwrap_err();

    assert!(wrong.starts_with("R28: listed as"), "{wrong}");
}

#[test]
fn a_tick_without_its_job_breaks_the_rule() {
    let mut model = model_of_a_lost_tick();
    model.keep(0, "it is not listed", PossibleState::is_absent).unwrap();
    model.conclude().unwrap();

    assert!(model.schedules_seen(&listed(3000)).is_err());
}

#[test]
fn a_delayed_tick_may_be_recorded_when_it_arrives() {
    let mut model = model();
    let call = model.tick_is_late(TICK, &push("job 1"));
    model.conclude().unwrap();
    model.schedules_seen(&listed(0)).unwrap();
    model.conclude().unwrap();

    model.maybe_ticked_late(TICK, call);
    model.conclude().unwrap();

    assert_eq!(job_may_be_absent(&model), [true, false]);
    model.schedules_seen(&listed(3000)).unwrap();
    model.conclude().unwrap();
    assert_eq!(job_may_be_absent(&model), [false]);
}

#[test]
fn a_tick_is_pushed_once() {
    let mut model = model();
    let first = Ticked::Pushed(Pushed::Stored("one".parse().unwrap()));
    model.ticked(TICK, &push("job 1"), &first).unwrap();
    model.conclude().unwrap();
    model.clone().ticked(TICK, &push("job 2"), &Ticked::NotLater).unwrap();

    let second = Ticked::Pushed(Pushed::Stored("two".parse().unwrap()));
    let wrong = model.ticked(TICK, &push("job 2"), &second).unwrap_err();

    assert!(wrong.starts_with("R28: a tick at 3000 ms is Pushed"), "{wrong}");
}
