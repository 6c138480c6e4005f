//! The child process: makes the calls of one scenario and stops at one step, where its
//! parent kills it.

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

/// The environment variable with the folder in which a child finds its order: what to
/// run and where to stop.
pub(super) const CHILD: &str = "RELQ_CONFORMANCE_CHILD";

/// The prefix of every line that a child prints for its parent. The parent ignores
/// other lines, which the test harness prints.
pub(super) const SAYS: &str = "relq: ";

/// The line that a child prints when it has reached its step and waits to be killed.
pub(super) const HIT: &str = "hit";

/// Whether this process is a child.
pub(crate) fn is_child() -> bool {
    folder().is_some()
}

/// The folder that contains the child's order. `None` if this process is not a child.
fn folder() -> Option<OsString> {
    std::env::var_os(CHILD)
}

/// Makes the calls of one scenario as a child process, and does not return.
///
/// # Panics
/// When this process was not started as a child by [`every_step`](super::every_step).
pub fn live(subject: Embedded) -> ! {
    let folder = folder().unwrap_or_else(|| panic!("{CHILD} says where the order is"));
    let folder = Path::new(&folder);
    let order = Order::read(folder);
    let obeying = carry_out(subject, folder, order);
    let Err(error) = Panics::default().on_this_thread(obeying);
    panic!("the system gives no runtime: {error}");
}

/// Makes the calls that the order names and ends the process, with an error code if a
/// background task panicked.
async fn carry_out(subject: Embedded, folder: &Path, order: Order) -> Infallible {
    let clock = VirtualClock::new();
    clock.advance(order.elapsed);
    let count = Count::default();
    let spot = order.spot;
    let watch = count.watch(move |at, text| {
        if spot.is_none() && at.side == Side::Before {
            let kind = if (subject.only_reads)(text) { "look" } else { "step" };
            say(&format!("{kind} {}", (subject.label)(text)));
        }
        if spot == Some(at) {
            stand_still();
        }
        Ok(())
    });
    let place = (folder, &clock);
    let ran = Ran::telling(|payload| say(&format!("ran {}", hex(payload))));
    let Order { receipts, jobs, .. } = order;
    // The parent prepared the store on a new clock of its own.
    let scene_began = VirtualClock::new().now();
    let part = Part { worker: victim(), receipts, jobs, scene_began, ran };
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

/// The lock that a thread takes before it prints the last line for the parent. A worker
/// has several threads, and the others must print nothing after one has stopped at its
/// step.
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

/// Prints one line for the parent directly, because the test harness would hold back
/// what `println!` prints.
fn say(what: &str) {
    let line = format!("\n{SAYS}{what}\n");
    stdout().write_all(line.as_bytes()).expect("the parent reads the output");
    stdout().flush().expect("the parent reads the output");
}
