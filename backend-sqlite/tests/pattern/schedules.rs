//! Tests of the table of schedules when other programs change it, or the clock was set
//! back.

use std::time::Duration;

use relq_core::{
    environment::Timestamp,
    schedule::{ScheduleName, ScheduleQueue as _, ScheduleStored, Tick, Ticked},
};
use rusqlite::{params, types::Value};
use tokio::time::timeout;

use crate::fixture::{Folder, raw};

/// Longer than any listing takes.
const ENDS: Duration = Duration::from_secs(20);

fn name(name: &str) -> ScheduleName {
    ScheduleName::new(name).unwrap()
}

/// R28: a row that is not a schedule is named, and the schedules are listed. Whole pages
/// of such rows end no list.
#[tokio::test]
async fn an_unreadable_row_hides_no_schedule() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    queue.put_schedule(&name("A"), b"hourly").await.unwrap();
    queue.put_schedule(&name("z"), b"hourly").await.unwrap();
    let insert = "INSERT INTO schedules (queue, name, definition, last_tick)
        SELECT queue, ?1, definition, last_tick FROM schedules WHERE name = 'A'";
    let other = raw(&folder.file());
    for number in 0..40 {
        other.execute(insert, [format!("foreign {number:02}")]).unwrap();
    }
    let cast = insert.replace("?1", "CAST(?1 AS TEXT)");
    other.execute(&cast, params![Value::Blob(b"a\xff".to_vec())]).unwrap();

    let listing = timeout(ENDS, queue.schedules()).await;

    let found = listing.expect("R28: the listing ends").unwrap();
    let names: Vec<_> = found.schedules.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["A", "z"]);
    assert_eq!(found.unreadable.len(), 41);
    let reason = "the schedule name may hold only A-Z a-z 0-9 . _ -";
    assert_eq!(found.unreadable[0], format!("\"a\u{fffd}\": {reason}"));
    assert_eq!(found.unreadable[40], format!("\"foreign 39\": {reason}"));
}

/// R28: the clock was set back after a tick. The tick is not pushed again by another
/// definition.
#[tokio::test]
async fn a_last_tick_in_the_future_outlives_its_definition() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    queue.put_schedule(&name("poll"), b"hourly").await.unwrap();
    let tick_ms = queue.schedules().await.unwrap().now.unix_ms() + 3_600_000;
    let update = "UPDATE schedules SET last_tick = ?1";
    assert_eq!(raw(&folder.file()).execute(update, [tick_ms]).unwrap(), 1);

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
