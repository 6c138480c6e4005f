//! Maps the events of a worker to metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use metrics::{Label, SharedString, counter, gauge, histogram};
use relq_core::{QueueName, outcome::Recovered};
use relq_worker::{
    JobContext,
    observer::{Buried, CallFailed, Claimed, Ended, LeaseLost, Observer, Started},
};

use crate::{
    kinds::Kinds,
    names::{
        BURIED, CALLS_FAILED, CLAIMED, DURATION, ENDED, LATENCY, LEASES_LOST,
        RECOVERED, RUNNING, WAIT, describe, failed, initialize,
    },
};

/// An observer that records the events of a worker as metrics.
///
/// ```
/// # async fn example(
/// #     queue: std::sync::Arc<dyn relq_core::ReliableQueue>,
/// # ) -> Result<(), Box<dyn std::error::Error>> {
/// use relq_core::QueueName;
/// use relq_metrics::MetricsObserver;
/// use relq_worker::{Failure, JobContext, Worker};
///
/// let send = async |_: JobContext| Ok::<_, Failure>(());
/// let observer = MetricsObserver::new(&QueueName::new("emails")?);
/// Worker::new(queue).observe(observer).run(send).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct MetricsObserver {
    queue: SharedString,
    /// `None` if the metrics have no label for the kind of a job.
    kinds: Option<Kinds>,
    /// How much of the gauge of running jobs comes from this observer.
    running: AtomicU64,
}

impl MetricsObserver {
    /// An observer for a worker on the queue of this name. The name is the value of the
    /// label `queue`.
    ///
    /// Install the recorder of the process before this call: it receives the descriptions
    /// of the metrics now. It also receives a zero for each counter that has no label but
    /// the queue and the operation, so that these counters exist before their first event.
    ///
    /// ```
    /// use metrics_exporter_prometheus::PrometheusBuilder;
    /// use relq_core::QueueName;
    /// use relq_metrics::MetricsObserver;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let recorder = PrometheusBuilder::new().install_recorder()?; // first
    /// let observer = MetricsObserver::new(&QueueName::new("emails")?);
    /// let page = recorder.render();
    /// assert!(page.contains(r#"relq_jobs_claimed_total{queue="emails"} 0"#));
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(queue: &QueueName) -> Self {
        describe();
        let queue = SharedString::from_shared(queue.as_str().into());
        let kinds = Some(Kinds::default());
        let observer = Self { queue, kinds, running: AtomicU64::new(0) };
        initialize(&observer.queue());
        observer
    }

    /// Leaves out the label `kind`.
    #[must_use]
    pub fn without_kinds(mut self) -> Self {
        self.kinds = None;
        self
    }

    fn queue(&self) -> Label {
        Label::new("queue", self.queue.clone())
    }

    /// The labels of a job: its queue, and its kind if it has one.
    fn labels(&self, job: &JobContext) -> Vec<Label> {
        let kind = self.kinds.as_ref().and_then(|kinds| kinds.label(job));
        let kind = kind.map(|kind| Label::new("kind", kind));
        [self.queue()].into_iter().chain(kind).collect()
    }

    fn count(&self, name: &'static str, times: u64) {
        counter!(name, vec![self.queue()]).increment(times);
    }
}

impl Observer for MetricsObserver {
    fn claimed(&self, event: &Claimed) {
        self.count(CLAIMED, event.jobs as u64);
    }

    fn started(&self, event: &Started<'_>) {
        self.running.fetch_add(1, Relaxed);
        gauge!(RUNNING, vec![self.queue()]).increment(1.0);
        histogram!(WAIT, vec![self.queue()]).record(event.waited);
        if let (Some(latency), 1) = (event.since_push, event.job.attempt()) {
            histogram!(LATENCY, vec![self.queue()]).record(latency);
        }
    }

    fn ended(&self, event: &Ended<'_>) {
        let mut labels = self.labels(event.job);
        if let Some(ran) = event.ran {
            self.running.fetch_sub(1, Relaxed);
            gauge!(RUNNING, vec![self.queue()]).decrement(1.0);
            histogram!(DURATION, labels.clone()).record(ran);
        }
        labels.push(Label::from_static_parts("outcome", event.outcome.name()));
        counter!(ENDED, labels).increment(1);
    }

    fn buried(&self, _: &Buried<'_>) {
        self.count(BURIED, 1);
    }

    fn lease_lost(&self, _: &LeaseLost<'_>) {
        self.count(LEASES_LOST, 1);
    }

    fn recovered(&self, event: &Recovered) {
        self.count(RECOVERED, event.requeued.into());
        self.count(BURIED, event.buried.into());
    }

    fn call_failed(&self, event: &CallFailed<'_>) {
        let labels = failed(self.queue(), event.operation);
        counter!(CALLS_FAILED, labels).increment(1);
    }
}

impl Drop for MetricsObserver {
    /// Subtracts the jobs that still run from the gauge. If the future of a worker is
    /// dropped, its observers receive no event for the end of these jobs.
    fn drop(&mut self) {
        #[allow(clippy::cast_precision_loss, reason = "no worker runs 2^53 jobs")]
        let running = self.running.load(Relaxed) as f64;
        gauge!(RUNNING, vec![self.queue()]).decrement(running);
    }
}

#[cfg(test)]
mod tests {
    use metrics_exporter_prometheus::PrometheusBuilder;

    use super::*;

    /// The values of the counters of recovered and of buried jobs after one recovery.
    fn counted(event: &Recovered) -> [u32; 2] {
        let recorder = PrometheusBuilder::new().build_recorder();
        metrics::with_local_recorder(&recorder, || {
            let observer = MetricsObserver::new(&QueueName::new("q").unwrap());
            observer.recovered(event);
        });
        let page = recorder.handle().render();
        [RECOVERED, BURIED].map(|name| {
            let start = format!("{name}{{queue=\"q\"}} ");
            let value = page.lines().find_map(|line| line.strip_prefix(&start));
            value.unwrap_or_else(|| panic!("{name} is not in\n{page}")).parse().unwrap()
        })
    }

    /// A recovery that makes no job ready may bury some, and the other way around.
    #[test]
    fn each_number_of_a_recovery_is_counted_by_itself() {
        for (requeued, buried) in [(0, 1), (1, 0), (2, 3)] {
            let event =
                Recovered { requeued, buried, promoted: 5, ..Default::default() };

            assert_eq!(counted(&event), [requeued, buried], "of {event:?}");
        }
    }
}
