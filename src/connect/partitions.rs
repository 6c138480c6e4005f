//! Opens a queue of several parts, as the options of a URL on Redis say.
//!
//! ```text
//!  ?partitions=3               queue Q is part 0; Q:1 and Q:2 are the others
//!  ?partitions=2&claim_from=3  pushes to two parts and claims from three, while the
//!                              number of parts is changed
//!  ?part=2                     one part alone, for an operator: the queue is Q:2
//! ```

use std::{
    num::{NonZeroU16, NonZeroU32},
    sync::Arc,
};

use relq_core::{
    Error, Queue, QueueName, Stats,
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
pub(super) const OPTIONS: [&str; 3] = ["partitions", "claim_from", PART];

/// The option that opens one part alone.
pub(super) const PART: &str = "part";

/// The most parts of a queue. Each costs a waiting worker up to four connections.
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
    let (rest, part) = number(url, &rest, PART)?;
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
        let partition = Partition::Other { number, pushed_to: Some(pushed_to) };
        let options = Options { partition, ..options.clone() };
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
    let Partition::First { pushed_to, claimed_from } = partition else {
        return Ok(Vec::new());
    };
    let numbers = (1..claimed_from.get()).filter_map(NonZeroU16::new);
    let of_part = |number| {
        let part = Partition::Other { number, pushed_to: Some(pushed_to) };
        owner(url, name_of(url, queue, number)?, part)
    };
    numbers.map(of_part).collect()
}

/// Refuses to change the number of parts of a queue while a part that is to be dropped has
/// jobs or batches, and while a part that is to be dropped or added is paused.
pub(super) async fn check_changed_parts(
    (open, owner): (Open, OwnerOf),
    url: &str,
    queue: &QueueName,
    seen: &Seen,
    options: Options,
) -> Result<(), ConnectError> {
    let kept = match options.partition {
        Partition::First { pushed_to, .. } => pushed_to.get(),
        _ => 1,
    };
    let parts = parts_of(owner, url, queue, seen).await?;
    let between = match seen {
        Seen::Marked { .. } => format!("?partitions={kept}&claim_from={parts}"),
        _ => format!("?partitions={parts}, with which the marker must be set first"),
    };
    for number in (kept.min(parts)..kept.max(parts)).filter_map(NonZeroU16::new) {
        let options = Options { partition: alone(number), ..options.clone() };
        let part = open(url, name_of(url, queue, number)?, options).await?;
        let stats = part.stats().await?;
        let why = if stats.paused {
            Some(is_paused(queue, number))
        } else if number.get() >= kept {
            why_not_dropped(&*part, &stats, &between).await?
        } else {
            None
        };
        if let Some(why) = why {
            return Err(cannot_change(&*part, queue, number, &why).into());
        }
    }
    Ok(())
}

fn cannot_change(
    part: &dyn Queue,
    queue: &QueueName,
    number: NonZeroU16,
    why: &str,
) -> Error {
    let backend = part.capabilities().backend;
    let source =
        format!("part {number} of the queue {queue} {why}; nothing was changed");
    Error::Unusable {
        at: ErrorContext { backend, operation: Operation::Connect },
        source: source.into(),
    }
}

fn is_paused(queue: &QueueName, number: NonZeroU16) -> String {
    format!(
        "is paused: resume the queue, or this part alone as the queue {queue}:{number} \
         with ?part={number}"
    )
}

/// Returns why a part cannot be dropped; `None` if it can. A batch counts as long as its
/// record is kept: until its retention is over and its completion job is pushed (B5, B6).
/// `between` are the options with which workers still claim from the part.
async fn why_not_dropped(
    part: &dyn Queue,
    stats: &Stats,
    between: &str,
) -> Result<Option<String>, Error> {
    let jobs = stats.unfinished() + stats.dead;
    if jobs > 0 {
        return Ok(Some(format!(
            "still has {jobs} jobs: let workers empty it with {between}, and redrive or \
             purge its dead jobs"
        )));
    }
    let Some(batches) = part.batch_queue() else { return Ok(None) };
    let batches = batches.list_batches(None, NonZeroU32::MIN).await?;
    Ok(batches.first().map(|batch| {
        format!(
            "still has the batch {}: let workers complete its batches with {between}, \
             and remove their records when their retention is over",
            batch.id
        )
    }))
}

/// Returns the number of parts, which the marker of the queue records. If that marker
/// cannot be read, counts the parts up to the first one without a marker: the first
/// recovery of a worker marks all parts.
async fn parts_of(
    owner: OwnerOf,
    url: &str,
    queue: &QueueName,
    seen: &Seen,
) -> Result<u16, ConnectError> {
    if let Seen::Marked { marker, .. } = seen {
        let value = |it: &String| it.strip_prefix("partitions=")?.parse().ok();
        return Ok(marker.options().iter().find_map(value).unwrap_or(1));
    }
    let mut parts = NonZeroU16::MIN;
    while parts.get() < MOST && is_marked_part(owner, url, queue, parts).await? {
        parts = parts.saturating_add(1);
    }
    Ok(parts.get())
}

/// Whether a marker says that there is a part of this number.
async fn is_marked_part(
    owner: OwnerOf,
    url: &str,
    queue: &QueueName,
    number: NonZeroU16,
) -> Result<bool, ConnectError> {
    // If the name of a part would be too long, the queue has no parts.
    let Ok(name) = Partition::name_of_part(queue, number) else { return Ok(false) };
    let (config, owner) = owner(url, name, alone(number))?;
    let seen = match relq_redis::see(config, &owner).await {
        // A user who may not read the keys of a part cannot use a queue of several parts.
        Err(Error::Denied { .. }) => return Ok(false),
        seen => seen?,
    };
    let Seen::Marked { marker, .. } = seen else { return Ok(false) };
    Ok(marker.options().contains(&format!("part={number}")))
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
            "part {number} of a queue Q is the queue Q:{number}, and \"{queue}\" has \
             another name"
        );
        return Err(bad_url(url, reason));
    }
    Ok(alone(number))
}

/// The part that a client opens without the others.
fn alone(number: NonZeroU16) -> Partition {
    Partition::Other { number, pushed_to: None }
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

#[cfg(test)]
mod tests {
    use super::super::BACKENDS;
    use super::*;

    fn opened(url: &str, backend: &str) -> Result<(String, Partition), ConnectError> {
        let backend = BACKENDS.iter().find(|it| it.name == backend).unwrap();
        read(url, backend, &QueueName::new("q:2").unwrap())
    }

    fn first(pushed_to: u16, claimed_from: u16) -> Partition {
        let [pushed_to, claimed_from] =
            [pushed_to, claimed_from].map(|parts| NonZeroU16::new(parts).unwrap());
        Partition::First { pushed_to, claimed_from }
    }

    #[test]
    fn the_options_name_the_parts_in_any_order_and_the_others_stay() {
        let other = alone(NonZeroU16::new(2).unwrap());
        for (options, rest, expected) in [
            ("?db=1", "?db=1", Partition::Whole),
            ("?partitions=1", "", Partition::Whole),
            ("?partitions=1&claim_from=1", "", Partition::Whole),
            ("?partitions=3", "", first(3, 3)),
            ("?partitions=2&claim_from=3", "", first(2, 3)),
            ("?claim_from=3&db=1&partitions=2", "?db=1", first(2, 3)),
            ("?claim_from=3", "", first(1, 3)),
            ("?partitions=256", "", first(256, 256)),
            ("?part=2&db=1", "?db=1", other),
        ] {
            let found = opened(&format!("unix:///s{options}"), "zset").unwrap();
            assert_eq!(found, (format!("unix:///s{rest}"), expected), "{options}");
        }
    }

    #[test]
    fn a_queue_of_keyspace_takes_none_of_the_options() {
        for option in OPTIONS {
            let refused = opened(&format!("keyspace+redis://h?{option}=2"), "keyspace");
            let error = refused.err().map(|it| it.to_string()).unwrap_or_default();
            assert!(error.contains("needs a database of its own"), "{option}: {error}");
        }
    }
}
