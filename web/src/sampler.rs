//! Reads the counts of all queues every few seconds, in one task for all visitors.

use std::{
    collections::BTreeMap,
    future::Future,
    num::NonZeroU16,
    pin::Pin,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use futures_util::{StreamExt as _, stream};
use relq_core::{Queue, QueueName, Stats, error::BoxError, operator::StatsHistory};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{MissedTickBehavior, interval},
};

use crate::{
    page_error::{PageError, with_causes},
    source::QueueSource,
};

/// How many queues are read at once.
const AT_ONCE: usize = 16;

/// How many queues are sampled: the first ones by their names.
pub(crate) const MOST_QUEUES: usize = 200;

/// The charts have one value for each minute of the last hour.
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: NonZeroU16 = NonZeroU16::new(60).expect("not zero");

/// The last known counts of a queue, or why they cannot be read.
pub(crate) type Counts = Result<Stats, String>;

/// The last sample of one queue, and the counts of its last hour.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) counts: Counts,
    pub(crate) history: StatsHistory,
}

impl Known {
    /// How many jobs ended in a second, over the last minute. `None` before the second
    /// sample.
    pub(crate) fn ended_per_second(&self) -> Option<f64> {
        self.history.rates(MINUTE).map(|rates| rates.ended)
    }
}

/// The queues as the last sample found them.
#[derive(Debug, Default)]
struct Found {
    queues: BTreeMap<QueueName, Known>,
    /// All queues of the source, or why they cannot be listed; `None` before the first
    /// sample.
    names: Option<Result<Vec<QueueName>, PageError>>,
}

type SharedFound = Arc<Mutex<Found>>;

/// The counts of the queues. The task that reads them ends with this value.
#[derive(Debug)]
pub(crate) struct Sampler {
    found: SharedFound,
    sampled: watch::Receiver<u64>,
    task: JoinHandle<()>,
}

impl Sampler {
    pub(crate) fn start(
        source: Arc<dyn QueueSource>,
        every: Duration,
        stop: Pin<Box<dyn Future<Output = ()> + Send>>,
    ) -> Self {
        let found = SharedFound::default();
        let (tell, sampled) = watch::channel(0);
        let sampling = sample_for_ever(source, every, found.clone(), tell);
        let task = tokio::spawn(async move {
            tokio::select! {
                () = sampling => {}
                () = stop => {}
            }
        });
        Self { found, sampled, task }
    }

    /// Notices of new samples. They end when the page is stopped.
    pub(crate) fn sampled(&self) -> watch::Receiver<u64> {
        self.sampled.clone()
    }

    /// The names of all queues, in order. Waits for the first sample.
    pub(crate) async fn names(&self) -> Result<Vec<QueueName>, PageError> {
        let stopped = || PageError::bad_request("the page is being stopped");
        let mut sampled = self.sampled.clone();
        sampled.wait_for(|count| *count > 0).await.map_err(|_| stopped())?;
        self.lock().names.clone().ok_or_else(stopped)?
    }

    pub(crate) fn known(&self, queue: &QueueName) -> Option<Known> {
        self.lock().queues.get(queue).cloned()
    }

    /// All queues that are sampled.
    pub(crate) fn all(&self) -> BTreeMap<QueueName, Known> {
        self.lock().queues.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Found> {
        self.found.lock().expect("no holder of the lock panics")
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn sample_for_ever(
    source: Arc<dyn QueueSource>,
    every: Duration,
    found: SharedFound,
    tell: watch::Sender<u64>,
) {
    let mut ticks = interval(every.max(Duration::from_millis(10)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        sample(&*source, &found).await;
        tell.send_modify(|count| *count += 1);
    }
}

/// Reads the counts of all queues once, up to 16 at a time, so that the others do not wait for
/// one whose server is silent. If the queues cannot be listed, the last counts of each are
/// outdated, and the error takes their place.
async fn sample(source: &dyn QueueSource, found: &SharedFound) {
    let listed = source.names().await.map_err(|error| PageError::source(&error));
    let lock = || found.lock().expect("no holder of the lock panics");
    let names = match &listed {
        Ok(names) => &names[..names.len().min(MOST_QUEUES)],
        Err(error) => {
            let mut found = lock();
            for known in found.queues.values_mut() {
                known.counts = Err(error.message.clone());
            }
            found.names = Some(listed);
            return;
        }
    };
    let sample_one = async |name: QueueName| {
        let counts = counts_of(source, &name).await;
        let mut found = lock();
        let known = found.queues.entry(name).or_insert_with(|| Known {
            counts: Ok(Stats::new()),
            history: StatsHistory::new(MINUTE, HOUR),
        });
        if let Ok(stats) = &counts {
            known.history.add(Instant::now(), stats);
        }
        known.counts = counts;
    };
    stream::iter(names.to_vec()).for_each_concurrent(AT_ONCE, sample_one).await;
    let mut found = lock();
    found.queues.retain(|name, _| names.contains(name));
    found.names = Some(listed);
}

async fn counts_of(source: &dyn QueueSource, name: &QueueName) -> Counts {
    let opened: Result<Option<Arc<dyn Queue>>, BoxError> = source.open(name).await;
    match opened {
        Ok(Some(queue)) => queue.stats().await.map_err(|error| error.full_message()),
        Ok(None) => Err("the queue is gone".to_owned()),
        Err(error) => Err(with_causes(&*error)),
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;

    use super::*;

    /// Queues of these names, of which none can be opened.
    #[derive(Debug)]
    struct Closed(Vec<QueueName>);

    #[async_trait]
    impl QueueSource for Closed {
        async fn names(&self) -> Result<Vec<QueueName>, BoxError> {
            Ok(self.0.clone())
        }

        async fn open(
            &self,
            _: &QueueName,
        ) -> Result<Option<Arc<dyn Queue>>, BoxError> {
            Ok(None)
        }
    }

    fn queues(numbers: std::ops::Range<usize>) -> Vec<QueueName> {
        numbers.map(|at| QueueName::new(format!("q{at:04}")).unwrap()).collect()
    }

    /// The jobs that are pushed meanwhile do not count.
    #[test]
    fn the_rate_is_that_of_the_jobs_that_end() {
        let (now, mut history) = (Instant::now(), StatsHistory::new(MINUTE, HOUR));
        let mut stats = Stats::new();
        history.add(now, &stats);
        (stats.ready, stats.dead) = (30, 40);
        (stats.finished, stats.discarded, stats.cancelled) = (10, 6, 4);

        history.add(now + Duration::from_secs(10), &stats);

        let known = Known { counts: Ok(stats), history };
        assert_eq!(known.ended_per_second(), Some(2.0), "20 jobs in 10 seconds");
    }

    /// Queues of which the first one is never opened, and the others are gone.
    #[derive(Debug)]
    struct FirstHangs(Vec<QueueName>);

    #[async_trait]
    impl QueueSource for FirstHangs {
        async fn names(&self) -> Result<Vec<QueueName>, BoxError> {
            Ok(self.0.clone())
        }

        async fn open(
            &self,
            name: &QueueName,
        ) -> Result<Option<Arc<dyn Queue>>, BoxError> {
            if *name == self.0[0] {
                std::future::pending::<()>().await;
            }
            Ok(None)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_queue_does_not_hold_up_the_others() {
        let found = SharedFound::default();
        let source = FirstHangs(queues(0..100));

        let sampled = sample(&source, &found);
        tokio::time::timeout(Duration::from_secs(1), sampled).await.unwrap_err();

        let known: Vec<_> = found.lock().unwrap().queues.keys().cloned().collect();
        assert_eq!(known, queues(1..100));
    }

    /// The last counts of such a queue are outdated, and its page would show them as live.
    #[tokio::test]
    async fn a_queue_that_is_no_longer_sampled_is_forgotten() {
        let found = SharedFound::default();
        let sampled =
            || found.lock().unwrap().queues.keys().cloned().collect::<Vec<_>>();
        sample(&Closed(queues(1..MOST_QUEUES + 1)), &found).await;
        assert_eq!(sampled(), queues(1..MOST_QUEUES + 1));

        sample(&Closed(queues(0..MOST_QUEUES + 1)), &found).await;

        assert_eq!(sampled(), queues(0..MOST_QUEUES));
    }
}
