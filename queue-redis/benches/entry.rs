//! Measures the cost of encoding and decoding entries and receipts, without a server.
//!
//! ```sh
//! cargo bench -p relq-redis
//! ```

use std::{collections::HashSet, time::Duration};

use divan::{Bencher, black_box};
use relq_core::{Bytes, JobId, NewJob, Priority, Receipt, environment::Timestamp};
use relq_redis::entry::{self, Entry};

/// The payload size that the workloads of `relq-bench` push, in bytes.
const PAYLOAD: usize = 256;

/// When the jobs were pushed.
const NOW: Option<Timestamp> = Some(Timestamp::from_unix_ms(1_800_000_000_000));

/// The number of receipts in one settlement.
const BATCH: usize = 100;

fn main() {
    divan::main();
}

#[derive(Debug, Clone, Copy)]
enum Options {
    None,
    Many,
}

const OPTIONS: [Options; 2] = [Options::None, Options::Many];

fn id(number: usize) -> JobId {
    JobId::new(format!("k3gtrm0834mvc10-{number}")).expect("a good id")
}

fn job(options: Options) -> NewJob {
    let job = NewJob::new(vec![b'x'; PAYLOAD]);
    match options {
        Options::None => job,
        Options::Many => job
            .id(id(0))
            .priority(Priority::HIGHEST)
            .lease(Duration::from_secs(5))
            .expires_in(Duration::from_secs(60))
            .header("traceparent", "00-0af7651916cd43dd8448eb211c80319c"),
    }
}

#[divan::bench(args = OPTIONS)]
fn encode(bencher: Bencher, options: Options) {
    let (job, id) = (job(options), id(1));
    bencher.bench(|| entry::encode(black_box(&job), black_box(&id), NOW));
}

#[divan::bench(args = OPTIONS)]
fn decode(bencher: Bencher, options: Options) {
    let element = Bytes::from(entry::encode(&job(options), &id(1), NOW));
    bencher.bench(|| Entry::decode(black_box(&element)));
}

fn receipts() -> Vec<Receipt> {
    let receipt = |number| {
        let token =
            format!("host:4711:k3gtrm08/1795176978840519/4mvc10k3gtrm-{number}p");
        Receipt::new(id(number), 1, token)
    };
    (0..BATCH).map(receipt).collect()
}

/// Clones receipts, as a worker does for each job that ends.
#[divan::bench(items_count = BATCH)]
fn clone_receipts(bencher: Bencher) {
    let receipts = receipts();
    bencher.bench(|| black_box(&receipts).clone());
}

#[divan::bench(items_count = BATCH)]
fn look_receipts_up(bencher: Bencher) {
    let receipts = receipts();
    let known: HashSet<_> = receipts.iter().cloned().collect();
    bencher.bench(|| receipts.iter().filter(|it| known.contains(*it)).count());
}
