//! The child process: runs one act and stops at one step, where its parent kills it.

use std::{
    convert::Infallible,
    ffi::OsString,
    io::{Write as _, stdout},
    path::Path,
    process::exit,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
};

use relq_core::environment::Clock as _;

use super::{
    Embedded, Side,
    act::{Count, act, pump},
    order::{Order, hex},
    start::victim,
};
use crate::{
    harness::runtime::Panics,
    proxy::VirtualClock,
    sweep::{Part, Ran, SCENARIOS},
};

/// The environment variable that tells a child which folder holds its order.
pub(super) const CHILD: &str = "RELQ_CONFORMANCE_CHILD";

/// The prefix of every line that a child prints for its parent. The test harness prints
/// lines of its own.
pub(super) const SAYS: &str = "relq: ";

/// The line that a child prints when it stands still at its step.
pub(super) const HIT: &str = "hit";

/// Whether this process is a child.
pub(super) fn is_child() -> bool {
    folder().is_some()
}

/// The folder that holds the order.
fn folder() -> Option<OsString> {
    std::env::var_os(CHILD)
}

/// Runs one act as a child, and does not return.
///
/// # Panics
/// When this process was not started as a child by [`every_step`](super::every_step).
pub fn live(subject: Embedded) -> ! {
    let folder = folder().unwrap_or_else(|| panic!("{CHILD} says where the order is"));
    let folder = Path::new(&folder);
    let order = Order::read(folder);
    let obeying = obey(subject, folder, order);
    let Err(error) = Panics::default().on_this_thread(obeying);
    panic!("the system gives no runtime: {error}");
}

/// Runs the order and exits, with an error code if a background task panicked.
async fn obey(subject: Embedded, folder: &Path, order: Order) -> Infallible {
    let clock = VirtualClock::new();
    clock.advance(order.elapsed);
    let count = Count::default();
    let spot = order.spot;
    let watch = count.watch(move |at, text| {
        if spot.is_none() && at.side == Side::Before {
            say(&format!("step {}", (subject.label)(text)));
        }
        if spot == Some(at) {
            stand_still();
        }
        Ok(())
    });
    let place = (folder, &clock);
    let ran = Ran::telling(|payload| say(&format!("ran {}", hex(payload))));
    let part = Part { worker: victim(), held: order.held, ran };
    let acted = act(subject, &SCENARIOS[order.scenario], place, part, watch);
    let asleep = async {
        clock.asleep(1).await;
        say("asleep");
        let moved = || say(&format!("elapsed {}", clock.elapsed().as_millis()));
        pump(&clock, &count, moved).await;
    };
    let done = tokio::select! {
        done = acted => done,
        () = asleep => unreachable!("the clock never stops"),
    };
    let _last = last_word();
    match done {
        Ok(()) => say("done"),
        Err(error) => say(&format!("failed {}", error.full_message())),
    }
    exit(i32::from(!Panics::here().take().is_empty()))
}

/// The thread that holds this lock prints the last line that the parent reads. A worker
/// has several threads, and the others keep running while one stands still at its step.
static LAST_WORD: Mutex<()> = Mutex::new(());

fn last_word() -> MutexGuard<'static, ()> {
    LAST_WORD.lock().unwrap_or_else(PoisonError::into_inner)
}

fn stand_still() -> ! {
    let _last = last_word();
    say(HIT);
    loop {
        thread::park();
    }
}

/// Prints one line at once, bypassing the output capture of the test harness.
fn say(what: &str) {
    let line = format!("\n{SAYS}{what}\n");
    stdout().write_all(line.as_bytes()).expect("the parent reads the output");
    stdout().flush().expect("the parent reads the output");
}
