//! The conformance suite, run on queues of several parts on one server.
//!
//! The cases and the sequences that combine options run on a queue that pushes to three
//! parts in turn. The tests of each step compare a call with one that is all or nothing,
//! which a call for jobs of several parts is not (R21). They run on a queue that is being
//! changed from two parts to one: all jobs are in part 0, and every call still goes to
//! both parts. With a third part they would take twice as long.
//! The random sequences with faults do not run: a client that dies while it pauses the
//! queue leaves some parts paused, and others that deliver.

use std::{num::NonZeroU16, process::ExitCode, sync::Arc};

use relq_conformance::{Profile, Subject, Tests, async_trait};
use relq_core::{Error, Queue, QueueName, environment::Environment};
use relq_partitions::PartitionedQueue;
use relq_redis::{Partition, mark_if_new, pattern::PatternConfig as _};
use relq_zset::ZsetConfig;

/// The length up to which a queue's name can be extended by the number of a part. A name
/// has at most 200 bytes.
const LONG: usize = 190;

/// A queue of the zset backend in `PARTS` parts, all of which workers claim from. The
/// first `PUSHED_TO` get jobs.
#[derive(Debug, Default)]
struct Partitioned<const PARTS: u16, const PUSHED_TO: u16>;

/// Assigns every id and every unique key to the last part. The suite pushes several of
/// them by one call, which a hash would lead apart; `tests/parts.rs` tests the hash.
fn always_the_last_part(_: &str) -> u64 {
    2
}

fn not_zero(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).expect("not zero")
}

/// The name of a part. The suite has a queue with the longest name, which can have no
/// parts with longer ones.
fn name(queue: &QueueName, number: u16) -> QueueName {
    let text = queue.as_str();
    let name = match number {
        0 => text.to_owned(),
        _ if text.len() > LONG => format!("{}:{}:{number}", &text[..LONG], text.len()),
        _ => format!("{text}:{number}"),
    };
    QueueName::new(name).expect("the name is short enough")
}

#[async_trait]
impl<const PARTS: u16, const PUSHED_TO: u16> Subject for Partitioned<PARTS, PUSHED_TO> {
    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        let first = Partition::First {
            pushed_to: not_zero(PUSHED_TO),
            claimed_from: not_zero(PARTS),
        };
        let config = ZsetConfig::new(endpoint).expect("the suite's URL is valid");
        let config = config.environment(environment.clone()).partition(first);
        let mut parts = vec![relq_zset::connect(config.clone(), queue.clone()).await?];
        for number in 1..PARTS {
            let pushed_to = Some(not_zero(PUSHED_TO));
            let part = Partition::Other { number: not_zero(number), pushed_to };
            let config = config.clone().partition(part);
            parts.push(relq_zset::connect(config, name(queue, number)).await?);
        }
        let whole = PartitionedQueue::new(parts, environment.clone())?;
        let whole =
            whole.hash(always_the_last_part).push_to(PUSHED_TO.into())?.starting_at(0);
        let (redis, owner) = config.owner(queue.clone());
        Ok(Arc::new(whole.before_first_write(Arc::new(move || {
            let (redis, owner) = (redis.clone(), owner.clone());
            Box::pin(async move { mark_if_new(redis, &owner).await })
        }))))
    }

    fn owns(&self, queue: &QueueName, key: &[u8]) -> bool {
        (0..PARTS).map(|number| name(queue, number)).any(|name| {
            key == name.as_str().as_bytes()
                || key.starts_with(format!("{{{name}}}:").as_bytes())
        })
    }

    fn scripts(&self) -> Vec<String> {
        relq_zset::testing::script_names().map(str::to_owned).collect()
    }
}

fn main() -> ExitCode {
    // The sweeps of zset interrupt the same scripts, so half of them are enough here.
    let half = 2.try_into().expect("not zero");
    let steps = Tests::steps::<Partitioned<2, 1>>(Profile::Redis);
    Tests::without_faults::<Partitioned<3, 3>>(Profile::Redis)
        .and(steps.sampled("steps::", half))
        .run()
}
