//! The child: does one act and stops at one step, where its parent kills it.

use std::{
    ffi::OsString,
    io::{Write as _, stdout},
    path::Path,
    process::exit,
    thread,
};

use queue_core::Clock as _;
use tokio::runtime::Builder;

use super::{
    Embedded, Side,
    act::{Count, act, pump},
    order::{Order, hex},
    start::victim,
};
use crate::{
    fault::VirtualClock,
    steps::{Part, Ran, SCENARIOS},
};

/// Says to a child where its order is.
pub(super) const CHILD: &str = "RELQ_CONFORMANCE_CHILD";

/// What every line begins with that a child says: the test harness says more.
pub(super) const SAYS: &str = "relq: ";

/// The folder of this process's order, if it is a child.
pub(super) fn folder() -> Option<OsString> {
    std::env::var_os(CHILD)
}

/// Does what the order says, and does not return.
pub(super) fn live(subject: Embedded, folder: &Path) -> ! {
    let order = Order::read(folder);
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("the system gives a runtime").block_on(obey(subject, folder, order));
    exit(0)
}

async fn obey(subject: Embedded, folder: &Path, order: Order) {
    let clock = VirtualClock::new();
    clock.advance(order.elapsed);
    let count = Count::default();
    let spot = order.spot;
    let watch = count.watch(move |at, text| {
        if spot.is_none() && at.side == Side::Before {
            say(&format!("step {}", (subject.label)(text)));
        }
        if spot == Some(at) {
            say("struck");
            loop {
                thread::park();
            }
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
        () = asleep => unreachable!("time does not end"),
    };
    match done {
        Ok(()) => say("done"),
        Err(error) => say(&format!("failed {}", error.full_message())),
    }
}

/// One line, at once, past what captures the output of tests.
fn say(what: &str) {
    let line = format!("\n{SAYS}{what}\n");
    stdout().write_all(line.as_bytes()).expect("the parent listens");
    stdout().flush().expect("the parent listens");
}
