//! Opens a queue of several parts, as the options of a URL on Redis say.
//!
//! ```text
//!  ?partitions=3               queue Q is part 0; Q:1 and Q:2 are the others
//!  ?partitions=2&claim_from=3  pushes to two parts and claims from three, while the
//!                              number of parts is changed
//!  ?part=2                     one part alone, for an operator: the queue is Q:2
//! ```

use std::{num::NonZeroU16, sync::Arc};

use relq_core::{
    Error, Queue, QueueName,
    error::{ErrorContext, Operation},
};
use relq_partitions::{BeforeFirstWrite, PartitionedQueue};
use relq_redis::{Owner, Partition, RedisConfig, Seen, mark_if_new};

use super::{
    Backend, ConnectError,
    opening::{Open, Options, OwnerOf, bad_url},
    own_option,
};

/// The options of this module.
pub(super) const OPTIONS: [&str; 3] = ["partitions", "claim_from", "part"];

/// The most parts of a queue. Each costs a waiting worker two connections.
const MOST: u16 = 256;

/// The backend whose queues need a whole database, so that they have no parts.
const WITHOUT_PARTS: &str = "keyspace";

/// Separates the options of this module from the URL. Returns the URL without them, and
/// the part of a queue that the URL opens.
pub(super) fn read(
    url: &str,
    backend: &Backend,
    queue: &QueueName,
) -> Result<(String, Partition), ConnectError> {
    let (rest, partitions) = number(url, url, "partitions")?;
    let (rest, claim_from) = number(url, &rest, "claim_from")?;
    let (rest, part) = number(url, &rest, "part")?;
    if partitions.or(claim_from).or(part).is_some() && backend.name == WITHOUT_PARTS {
        let reason = "a queue of keyspace needs a database of its own, so it has no \
                      parts: use another backend";
        return Err(bad_url(url, reason));
    }
    let partition = match (partitions, claim_from, part) {
        (None, None, None) => Partition::Whole,
        (None, None, Some(number)) => the_part(url, queue, number)?,
        (pushed_to, claim_from, None) => several(url, pushed_to, claim_from)?,
        _ => {
            let reason = "the option part opens one part alone, without partitions and \
                          claim_from";
            return Err(bad_url(url, reason));
        }
    };
    Ok((rest, partition))
}

/// Opens the queue that `url` names, with all of its parts. The URL has none of the
/// options of this module.
pub(super) async fn open(
    (open, owner): (Open, Option<OwnerOf>),
    url: &str,
    queue: &QueueName,
    options: Options,
) -> Result<Arc<dyn Queue>, ConnectError> {
    let first = options.partition;
    let Partition::First { pushed_to, claimed_from } = first else {
        return open(url, queue.clone(), options).await;
    };
    let mut parts = vec![open(url, queue.clone(), options.clone()).await?];
    for number in (1..claimed_from.get()).filter_map(NonZeroU16::new) {
        let options =
            Options { partition: Partition::Other { number }, ..options.clone() };
        parts.push(open(url, name_of(url, queue, number)?, options).await?);
    }
    let whole = PartitionedQueue::new(parts, options.environment.clone())?;
    let whole = whole.push_to(pushed_to.get().into())?;
    let Some(owner) = owner else { return Ok(Arc::new(whole)) };
    let marking = marking(owner, url, queue, &options)?;
    Ok(Arc::new(whole.before_first_write(marking)))
}

/// Returns the servers and the owners of the parts of a queue, without part 0.
pub(super) fn owners(
    owner: OwnerOf,
    url: &str,
    queue: &QueueName,
    partition: Partition,
) -> Result<Vec<(RedisConfig, Owner)>, ConnectError> {
    let Partition::First { claimed_from, .. } = partition else {
        return Ok(Vec::new());
    };
    let numbers = (1..claimed_from.get()).filter_map(NonZeroU16::new);
    let of_part =
        |number| owner(url, name_of(url, queue, number)?, Partition::Other { number });
    numbers.map(of_part).collect()
}

/// Refuses to change the number of parts of a queue while parts that are to be dropped
/// have jobs.
pub(super) async fn check_dropped_parts(
    open: Open,
    url: &str,
    queue: &QueueName,
    seen: &Seen,
    options: Options,
) -> Result<(), ConnectError> {
    let kept = match options.partition {
        Partition::First { pushed_to, .. } => pushed_to.get(),
        _ => 1,
    };
    for number in (kept..parts_of(seen)).filter_map(NonZeroU16::new) {
        let options =
            Options { partition: Partition::Other { number }, ..options.clone() };
        let part = open(url, name_of(url, queue, number)?, options).await?;
        let stats = part.stats().await?;
        let jobs = stats.unfinished() + stats.dead;
        if jobs > 0 {
            let backend = part.capabilities().backend;
            return Err(Error::Unusable {
                at: ErrorContext { backend, operation: Operation::Connect },
                source: format!(
                    "part {number} of the queue {queue} still has {jobs} jobs; nothing \
                     was changed: let workers empty it with \
                     ?partitions={kept}&claim_from={}, and redrive or purge its dead \
                     jobs",
                    parts_of(seen)
                )
                .into(),
            }
            .into());
        }
    }
    Ok(())
}

/// The number of parts that the marker of a queue says.
fn parts_of(seen: &Seen) -> u16 {
    let Seen::Marked { marker, .. } = seen else { return 1 };
    let value = |it: &String| it.strip_prefix("partitions=")?.parse().ok();
    marker.options().iter().find_map(value).unwrap_or(1)
}

fn several(
    url: &str,
    pushed_to: Option<NonZeroU16>,
    claim_from: Option<NonZeroU16>,
) -> Result<Partition, ConnectError> {
    let pushed_to = pushed_to.unwrap_or(NonZeroU16::MIN);
    let claimed_from = claim_from.unwrap_or(pushed_to);
    if claimed_from < pushed_to {
        let reason = "claim_from must not be less than partitions, because no worker \
                      would claim from the other parts";
        return Err(bad_url(url, reason));
    }
    if claimed_from == NonZeroU16::MIN {
        return Ok(Partition::Whole);
    }
    Ok(Partition::First { pushed_to, claimed_from })
}

fn the_part(
    url: &str,
    queue: &QueueName,
    number: NonZeroU16,
) -> Result<Partition, ConnectError> {
    if !queue.as_str().ends_with(&format!(":{number}")) {
        let reason = format!(
            "part {number} of a queue Q is the queue Q:{number}, and {queue:?} has \
             another name"
        );
        return Err(bad_url(url, reason));
    }
    Ok(Partition::Other { number })
}

fn name_of(
    url: &str,
    queue: &QueueName,
    number: NonZeroU16,
) -> Result<QueueName, ConnectError> {
    Partition::name_of_part(queue, number)
        .map_err(|error| bad_url(url, format!("the name of part {number}: {error}")))
}

/// Returns the function that marks part 0 before the first write to any part, so that
/// a client with another number of parts is always refused (R25).
fn marking(
    owner: OwnerOf,
    url: &str,
    queue: &QueueName,
    options: &Options,
) -> Result<BeforeFirstWrite, ConnectError> {
    let (config, owner) = owner(url, queue.clone(), options.partition)?;
    let config = config.environment(options.environment.clone());
    Ok(Arc::new(move || {
        let (config, owner) = (config.clone(), owner.clone());
        Box::pin(async move { mark_if_new(config, &owner).await })
    }))
}

/// Returns `address` without the option `name`, and the value of the option if it is
/// there. Fails unless the value is one number from 1 to [`MOST`].
fn number(
    url: &str,
    address: &str,
    name: &str,
) -> Result<(String, Option<NonZeroU16>), ConnectError> {
    let (rest, values) = own_option::split(address, name);
    let number = match values.as_slice() {
        [] => return Ok((rest, None)),
        [value] => value.parse::<NonZeroU16>().ok().filter(|it| it.get() <= MOST),
        _ => None,
    };
    let reason = || format!("the option {name} must be one number from 1 to {MOST}");
    let number = number.ok_or_else(|| bad_url(url, reason()))?;
    Ok((rest, Some(number)))
}
