//! Tests of the list of all schedules: in the order of the names, page by page (R28).

use std::sync::Arc;

use bytes::Bytes;
use relq_core::schedule::MAX_DEFINITION;

use super::fixture::{DAILY, HOURLY, SECOND, name};
use crate::{
    cases::{
        case,
        times::{TOLERANCE, now},
    },
    harness::{actor::Actor, store::Store},
};

/// The counts of schedules at which a case lists them: around the steps of the actors,
/// and around the pages that a store may read.
const COUNTS: [usize; 23] = [
    1, 2, 6, 7, 8, 14, 15, 16, 17, 31, 32, 33, 48, 99, 100, 101, 127, 128, 129, 200,
    255, 256, 257,
];

/// So long that Redis does not store a hash of it in one piece, which it would also read
/// in one piece.
const LONG: &[u8] = &[b'x'; 100];

fn numbered(number: usize) -> String {
    format!("schedule-{number:04}")
}

/// Asserts that the schedules with the numbers below `count` are listed, each once.
async fn lists(actor: &Actor, count: usize) {
    let found = actor.found().await.schedules;
    let names: Vec<_> = found.iter().map(|schedule| schedule.name.clone()).collect();
    let wanted: Vec<_> = (0..count).map(|number| name(&numbered(number))).collect();
    assert_eq!(names.len(), wanted.len(), "R28: the number of schedules");
    assert_eq!(names, wanted, "R28: the names of the schedules");
}

case!(the_list_has_the_time_of_the_store: R28 R18 => Schedules, real_time);
/// The list of the schedules says what time it is by the store's clock, also if there is
/// no schedule.
async fn the_list_has_the_time_of_the_store(store: &Store) {
    let actor = store.actor("scheduler").await;
    for _ in 0..2 {
        let before = now(store);
        let told = actor.found().await.now;
        let apart = told.since(before).max(before.since(told));
        assert!(apart <= TOLERANCE, "R18: {told:?} at {before:?}");
        store.advance(SECOND).await;
    }
}

case!(schedules_are_listed_by_name: R28 => Schedules);
/// The schedules are listed in the order of their names, in whichever order they were
/// stored.
async fn schedules_are_listed_by_name(store: &Store) {
    let actor = store.actor("scheduler").await;
    for of in ["b", "a", "10", "Z", "9", "_", "c.1", "c", "c-1"] {
        actor.put(of, HOURLY).await;
    }

    let found = actor.found().await.schedules;

    let names: Vec<_> = found.iter().map(|schedule| schedule.name.as_str()).collect();
    assert_eq!(names, ["10", "9", "Z", "_", "a", "b", "c", "c-1", "c.1"]);
}

case!(schedules_of_several_pages_are_all_listed: R28 => Schedules);
/// All schedules are listed, and each once: one less than a page of them, a page, one
/// more, and several pages.
async fn schedules_of_several_pages_are_all_listed(store: &Store) {
    let writer = Arc::new(store.actor("writer").await);
    let readers = [store.actor("reader").await, store.actor_in_steps("r").await];
    let mut stored = 0;
    for count in COUNTS {
        for number in stored..count {
            writer.put(&numbered(number), LONG).await;
        }
        stored = count;
        for reader in &readers {
            lists(reader, count).await;
        }
    }
    for number in (0..stored).rev().take(200) {
        assert!(writer.remove(&numbered(number)).await);
    }
    lists(&readers[0], stored - 200).await;
}

case!(schedules_of_many_bytes_are_all_listed: R28 => Schedules);
/// Many definitions of the largest size are listed, each unchanged.
async fn schedules_of_many_bytes_are_all_listed(store: &Store) {
    const COUNT: u8 = 70;
    let actor = store.actor("scheduler").await;
    let definition =
        |number: u8| vec![number; MAX_DEFINITION - usize::from(number % 2)];
    for number in 0..COUNT {
        actor.put(&numbered(number.into()), &definition(number)).await;
    }
    actor.put("small", DAILY).await;

    let found = actor.found().await.schedules;

    assert_eq!(found.len(), usize::from(COUNT) + 1);
    let (small, large) = found.split_last().expect("there are some");
    assert_eq!(small.definition, DAILY);
    for (number, schedule) in (0..).zip(large) {
        assert_eq!(schedule.name, name(&numbered(number.into())));
        assert!(schedule.definition == definition(number), "R28: {}", schedule.name);
    }
}

case!(schedules_that_stay_are_listed_while_others_change: R28 => Schedules);
/// While schedules are stored and removed, each one that stays is listed once.
async fn schedules_that_stay_are_listed_while_others_change(store: &Store) {
    const STAY: usize = 150;
    let (writer, reader) = (store.actor("writer").await, store.actor("reader").await);
    for number in 0..STAY {
        writer.put(&numbered(number), HOURLY).await;
    }
    let changing = tokio::spawn(async move {
        for round in 0..200 {
            let of = format!("schedule-{:04}-b", round % STAY);
            writer.put(&of, HOURLY).await;
            writer.put(&of, DAILY).await;
            assert!(writer.remove(&of).await, "R28: it was stored");
        }
    });

    while !changing.is_finished() {
        let mut found = reader.found().await.schedules;
        found.retain(|schedule| !schedule.name.as_str().ends_with("-b"));
        assert_eq!(found.len(), STAY, "R28: a schedule that stays is not listed once");
        assert!(found.iter().all(|one| one.definition == Bytes::from_static(HOURLY)));
    }

    changing.await.expect("the changes end");
    lists(&reader, STAY).await;
}
