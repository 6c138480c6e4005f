//! Virtual time for both threads of a worker.
//!
//! Sleeps of the worker and events of the scripted store are entries of one list. The
//! simulation completes the next entry when both threads are idle. A suspended machine
//! is time that passes for the store and for the wall clock, and not for the steady
//! clock.

use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use relq_core::environment::{Clock, Randomness, Timestamp};

/// The wall clock at the start. Its value does not matter.
const EPOCH_MS: i64 = 1_700_000_000_000;

/// Clones share the time.
#[derive(Clone, Default)]
pub(crate) struct VirtualClock(Arc<Mutex<Timeline>>);

#[derive(Default)]
struct Timeline {
    /// The steady clock.
    steady: Duration,
    /// How long the machine was suspended.
    suspended: Duration,
    entries: BTreeMap<Place, Entry>,
    entered: u64,
    /// How often the clock was used. When the number stays, both threads are idle.
    uses: u64,
}

/// The time of an entry. Entries of one time are in a fixed order, whichever thread
/// was faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    at: Duration,
    is_of_heartbeat: bool,
    number: u64,
}

/// The thread that waits for an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EnteredBy {
    Heartbeat,
    Other,
}

enum Entry {
    Sleep(Option<Waker>),
    Event(Box<dyn FnOnce() + Send>),
}

impl VirtualClock {
    /// The time of the store, which a suspended machine does not stop.
    pub(crate) fn store_time(&self) -> Duration {
        let timeline = self.lock();
        timeline.steady + timeline.suspended
    }

    /// Runs `event` when the machine has run for `delay` from now.
    pub(crate) fn after(&self, delay: Duration, event: impl FnOnce() + Send + 'static) {
        let mut timeline = self.lock();
        let place = timeline.place(delay);
        timeline.entries.insert(place, Entry::Event(Box::new(event)));
    }

    /// The machine is suspended for `length`.
    pub(crate) fn suspend(&self, length: Duration) {
        self.lock().suspended += length;
    }

    pub(crate) fn uses(&self) -> u64 {
        self.lock().uses
    }

    /// Notes that a thread does something that this clock does not see.
    pub(crate) fn used(&self) {
        self.lock().uses += 1;
    }

    /// Completes the next sleep or event, and moves the time to it. Returns the thread
    /// that entered it; `None` when there is nothing to complete.
    pub(crate) fn complete_next(&self) -> Option<EnteredBy> {
        let mut timeline = self.lock();
        timeline.uses += 1;
        let (place, entry) = timeline.entries.pop_first()?;
        timeline.steady = timeline.steady.max(place.at);
        drop(timeline);
        match entry {
            Entry::Sleep(waker) => {
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
            Entry::Event(event) => event(),
        }
        Some(if place.is_of_heartbeat {
            EnteredBy::Heartbeat
        } else {
            EnteredBy::Other
        })
    }

    fn lock(&self) -> MutexGuard<'_, Timeline> {
        self.0.lock().unwrap()
    }
}

impl Timeline {
    fn place(&mut self, delay: Duration) -> Place {
        self.entered += 1;
        self.uses += 1;
        let at = self.steady.saturating_add(delay);
        Place { at, is_of_heartbeat: is_heartbeat(), number: self.entered }
    }
}

/// Whether this code runs on the worker's heartbeat thread.
pub(crate) fn is_heartbeat() -> bool {
    std::thread::current().name() == Some("relq-heartbeat")
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        self.used();
        Timestamp::from_unix_ms(EPOCH_MS).plus(self.store_time())
    }

    fn elapsed(&self) -> Duration {
        self.used();
        self.lock().steady
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let mut timeline = self.lock();
        let place = timeline.place(duration);
        timeline.entries.insert(place, Entry::Sleep(None));
        drop(timeline);
        Box::pin(Sleep { clock: self.clone(), place })
    }
}

impl fmt::Debug for VirtualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VirtualClock({:?})", self.store_time())
    }
}

struct Sleep {
    clock: VirtualClock,
    place: Place,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut timeline = self.clock.lock();
        match timeline.entries.get_mut(&self.place) {
            Some(Entry::Sleep(waker)) => {
                *waker = Some(context.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.clock.lock().entries.remove(&self.place);
    }
}

/// Random numbers from a seed, with a sequence for each of the worker's threads.
#[derive(Debug)]
pub(crate) struct SeededRandomness([AtomicU64; 2]);

impl SeededRandomness {
    pub(crate) fn new(seed: u64) -> Self {
        Self([AtomicU64::new(seed), AtomicU64::new(!seed)])
    }

    /// The generator `SplitMix64`.
    fn next(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let state = &self.0[usize::from(is_heartbeat())];
        let mut z = state.fetch_add(STEP, Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

impl Randomness for SeededRandomness {
    fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
    }
}
