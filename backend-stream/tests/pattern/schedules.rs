//! Tests of what happens to schedules when another client changes the hash that stores
//! them, or when the server's clock is set back. All backends on Redis share that hash, so
//! one backend is enough.

use relq_conformance::server::Server;
use relq_core::{
    environment::Timestamp,
    schedule::{ScheduleName, ScheduleQueue, ScheduleStored, Tick, Ticked},
};

use crate::fixture::*;

const KEY: &[u8] = b"{q}:schedules";

fn name(name: &str) -> ScheduleName {
    ScheduleName::new(name).unwrap()
}

/// R28: a field that is not a schedule is named, and the schedules are listed.
#[tokio::test]
async fn an_unreadable_field_hides_no_schedule() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    queue.put_schedule(&name("good"), b"hourly").await.unwrap();
    for (field, value) in [
        (&b"a b"[..], &b"123456hourly"[..]),
        (b"\xff", b"123456"),
        (b"short", b"12345"),
    ] {
        server.command(&[b"HSET", KEY, field, value]);
    }

    let found = queue.schedules().await.unwrap();

    let names: Vec<_> = found.schedules.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["good"]);
    assert_eq!(
        found.unreadable,
        [
            "\"a b\": the schedule name may hold only A-Z a-z 0-9 . _ -",
            "\"short\": a value of 5 bytes has no last tick",
            "\"\u{fffd}\": the schedule name may hold only A-Z a-z 0-9 . _ -",
        ]
    );
    assert!(queue.remove_schedule(&name("short")).await.unwrap());
    assert_eq!(queue.schedules().await.unwrap().unreadable.len(), 2);
}

/// A value without a last tick is replaced like any other.
#[tokio::test]
async fn a_damaged_schedule_can_be_stored_again() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    queue.put_schedule(&name("poll"), b"hourly").await.unwrap();
    server.command(&[b"HSET", KEY, b"poll", b"12345"]);

    let stored = queue.put_schedule(&name("poll"), b"hourly").await.unwrap();

    assert_eq!(stored, ScheduleStored::Replaced);
    let found = queue.schedules().await.unwrap();
    assert_eq!((found.schedules.len(), found.unreadable.len()), (1, 0));
    assert!(found.now.since(found.schedules[0].last_tick) < LONG);
}

/// R28: the server's clock was set back after a tick. The tick is not pushed again by
/// another definition.
#[tokio::test]
async fn a_last_tick_in_the_future_outlives_its_definition() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    queue.put_schedule(&name("poll"), b"hourly").await.unwrap();
    let tick_ms = queue.schedules().await.unwrap().now.unix_ms() + 3_600_000;
    let last_tick = &tick_ms.to_be_bytes()[2..];
    server.command(&[b"HSET", KEY, b"poll", &[last_tick, b"hourly"].concat()]);

    let stored = queue.put_schedule(&name("poll"), b"daily").await.unwrap();

    assert_eq!(stored, ScheduleStored::Replaced);
    let found = queue.schedules().await.unwrap().schedules;
    assert_eq!(found[0].last_tick, Timestamp::from_unix_ms(tick_ms));
    let again = Tick::of(&found[0], found[0].last_tick);
    assert_eq!(
        queue.push_tick(&again, "again".into()).await.unwrap(),
        Ticked::NotLater
    );
}
