//! The bytes on their way through the proxy, so that the suite can tell when there are
//! none.

use std::time::Duration;

use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};

/// How long a command that the server has not replied to is waited for. A fault may
/// keep a command without a reply for ever.
const REPLY_LIMIT: Duration = Duration::from_secs(1);

/// How many times the proxy lets all other tasks run before it takes them for idle. A
/// client needs three turns between the reply to one command and its next command.
const TURNS: usize = 8;

/// Counts the traffic through the proxy, and the commands that have no reply yet.
#[derive(Debug)]
pub(crate) struct Traffic {
    state: watch::Sender<Counts>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Counts {
    /// How many times bytes have arrived at the proxy, or a connection has begun or
    /// ended.
    moves: u64,
    /// How many commands have no reply yet, plus how many connections are about to
    /// begin or end. Commands that the server holds are not counted.
    ///
    /// The number can be less than zero for a moment, because the reply to a held
    /// command is subtracted although the command was not counted.
    under_way: isize,
}

/// The beginning or the end of a connection. It counts as under way until this is dropped.
#[derive(Debug)]
pub(crate) struct UnderWay<'a>(&'a Traffic);

impl Traffic {
    pub(crate) fn new() -> Self {
        Self { state: watch::Sender::default() }
    }

    /// Counts the arrival of bytes.
    pub(crate) fn moves(&self) {
        self.state.send_modify(|counts| counts.moves += 1);
    }

    pub(crate) fn begins(&self) -> UnderWay<'_> {
        self.adds(1);
        UnderWay(self)
    }

    pub(crate) fn adds(&self, count: isize) {
        self.state.send_modify(|counts| counts.under_way += count);
    }

    pub(crate) fn ends(&self, count: isize) {
        self.state.send_modify(|counts| {
            counts.under_way -= count;
            counts.moves += 1;
        });
    }

    /// Completes once nothing is under way and nothing has moved for `period` of real
    /// time. A period in which this task itself was woken late does not count: the
    /// machine was busy, so a client may have had no time to go on either.
    pub(crate) async fn pauses(&self, period: Duration) {
        let mut state = self.state.subscribe();
        loop {
            // The sender lives as long as this.
            let replied = state.wait_for(|counts| counts.under_way <= 0);
            drop(timeout(REPLY_LIMIT, replied).await);
            let (before, start) = (*self.state.borrow(), Instant::now());
            sleep(period).await;
            let is_late = start.elapsed() > period * 2;
            if *self.state.borrow() == before && !is_late {
                return;
            }
        }
    }

    /// Completes once nothing is under way and no task of this runtime has sent anything
    /// for [`TURNS`] turns. The proxy must run on the same thread as its clients: then
    /// a client that has something to do does it in one of these turns.
    pub(crate) async fn ceases(&self) {
        let mut state = self.state.subscribe();
        loop {
            // The sender lives as long as this.
            let _ = state.wait_for(|counts| counts.under_way == 0).await;
            let before = *self.state.borrow();
            for _ in 0..TURNS {
                tokio::task::yield_now().await;
            }
            if *self.state.borrow() == before {
                return;
            }
        }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.ends(1);
    }
}
