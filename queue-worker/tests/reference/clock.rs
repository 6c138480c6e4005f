//! Virtual time for both threads of a worker.
//!
//! Sleeps of the worker and events of the scripted store are entries of one list. The
//! simulation completes the next entry when both threads are idle. While the machine is
//! suspended, time passes for the store and for the wall clock, but not for the steady
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

/// The time of the wall clock at the start of a run. Any value would do.
const EPOCH_MS: i64 = 1_700_000_000_000;

/// The clock that the worker, the store and the simulation share. Clones show the same
/// time.
#[derive(Clone, Default)]
pub(crate) struct VirtualClock(Arc<Mutex<Timeline>>);

#[derive(Default)]
struct Timeline {
    /// The time of the steady clock. It stands still while the machine is suspended.
    steady: Duration,
    /// How long, in total, the machine was suspended.
    suspended: Duration,
    entries: BTreeMap<Place, Entry>,
    entered: u64,
    /// How often the clock was used. If this number does not grow, both threads are
    /// idle.
    uses: u64,
}

/// The position of an entry in the list: its time, and then a fixed order, which does
/// not depend on the speed of the threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    at: Duration,
    is_of_heartbeat: bool,
    number: u64,
}

/// The thread that added an entry and waits for it.
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
    /// The time of the store's clock, which runs while the machine is suspended.
    pub(crate) fn store_time(&self) -> Duration {
        let timeline = self.lock();
        timeline.steady + timeline.suspended
    }

    /// Plans to run `event` after the machine has run for `delay`.
    pub(crate) fn after(&self, delay: Duration, event: impl FnOnce() + Send + 'static) {
        let mut timeline = self.lock();
        let place = timeline.place(delay);
        timeline.entries.insert(place, Entry::Event(Box::new(event)));
    }

    /// Suspends the machine for `length`.
    pub(crate) fn suspend(&self, length: Duration) {
        self.lock().suspended += length;
    }

    pub(crate) fn uses(&self) -> u64 {
        self.lock().uses
    }

    /// Counts an action of a thread that does not use the clock, so that the thread
    /// does not seem idle.
    pub(crate) fn used(&self) {
        self.lock().uses += 1;
    }

    /// Moves the time to the next sleep or event and completes it. Returns the thread
    /// that added it. `None` if the list is empty.
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

    /// The next number of the generator `SplitMix64`.
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
